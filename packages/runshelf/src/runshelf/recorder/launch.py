"""The program to start, and how to record it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from runshelf.store.run import Capture, RunInfo

GRACE_SECONDS = 30.0

# Called with one line of information for the user.
Say = Callable[[str], None]


@final
@dataclass(frozen=True)
class Launch:
    """The process to start: its command line, unmasked, and its full environment."""

    argv: tuple[str, ...]
    executable: str
    cwd: Path
    environ: Mapping[str, str]


@final
@dataclass(frozen=True)
class Recording:
    """A program to record, and how to record it.

    Attributes:
        home: the folder whose `runs/` holds runs.
        argv: the command line to store, secrets masked.
        cwd: the working folder to store.
        info: the run information.
        capture: stores code and environment before the start.
        launch: returns the process to start, given the run's folder; called after `capture`.
        grace_seconds: time from the end of the budget until the program is killed.
        out: the descriptor that shows its stdout.
        err: the descriptor that shows its stderr.
        hidden: secrets that are masked in the output that is kept.
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
    hidden: tuple[str, ...] = ()
