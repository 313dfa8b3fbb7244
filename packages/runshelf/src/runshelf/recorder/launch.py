"""What is to be recorded, and what is to be started for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from runshelf.store.run import Capture, RunInfo

GRACE_SECONDS = 30.0

# Told, one line a call, what a person should know.
Say = Callable[[str], None]


@final
@dataclass(frozen=True)
class Launch:
    """What to start.

    Attributes:
        argv: the command line, nothing masked.
        executable: the absolute path of its program.
        cwd: where.
        environ: the environment, without what the recorder adds.
    """

    argv: tuple[str, ...]
    executable: str
    cwd: Path
    environ: Mapping[str, str]


@final
@dataclass(frozen=True)
class Recording:
    """What is to be recorded, and how.

    Attributes:
        home: the folder whose `runs/` holds runs.
        argv: the command line as it is written down.
        cwd: the working folder as it is written down.
        info: what a person says of it.
        capture: keeps what is to be kept before the start.
        launch: what to start, given the run's folder, once that is kept.
        grace_seconds: from the end of its budget until it is killed.
        out: the descriptor on which its stdout is shown.
        err: the one of its stderr.
    """

    home: Path
    argv: tuple[str, ...]
    cwd: Path
    info: RunInfo
    capture: Capture
    launch: Callable[[Path], Launch]
    grace_seconds: float = GRACE_SECONDS
    out: int = 1
    err: int = 2
