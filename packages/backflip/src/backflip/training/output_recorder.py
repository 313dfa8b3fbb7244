"""What a run of `train` or `teach` keeps of itself: what it said, and what it took of the machine.

`backflip run` keeps both of a program from outside. These commands are recorded by their own
process, so that they can be called from Python, resumed, and shown on a terminal as they are.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, final

import psutil

from backflip.training.progress import Progress, plain_line
from runshelf.recorder.lines import Line
from runshelf.recorder.output_log import OutputWriter
from runshelf.recorder.output_reader import recorded_up_to
from runshelf.recorder.system_metrics import SystemMetrics
from runshelf.snapshot.capture import capture, without_secrets
from runshelf.snapshot.secrets import find_secrets
from runshelf.store.run import Capture, Run, RunInfo, open_run


class Captured(NamedTuple):
    """What is kept of a run of ours before it starts.

    Attributes:
        argv: the command line, secrets masked.
        info: what a person says of it, secrets masked.
        keep: keeps code, packages and machine, given the run's folder.
    """

    argv: list[str]
    info: RunInfo
    keep: Capture


def captured(
    home: Path, argv: Sequence[str], info: RunInfo, say: Callable[[str], None]
) -> Captured:
    """Return what is to be kept of a run of ours.

    Args:
        home: the home of the run.
        argv: the command line.
        info: what a person says of it; if it repeats a run of this home, it has that one's code.
        say: is told what is masked and what is left out.
    """
    secrets = find_secrets(argv, os.environ)
    folder = home / "runs" / info.parent if info.parent else None
    parent = open_run(folder) if folder and folder.is_dir() else None
    keep = capture(home, argv, say=say, secrets=secrets, interpreter=sys.executable, parent=parent)
    return Captured(list(secrets.argv), without_secrets(info, secrets), keep)


@final
class OutputRecorder:
    """Keeps a run's `output.log` and `metrics-system.jsonl` while this process works at it."""

    def __init__(self, run: Run) -> None:
        """Begin, or go on where an earlier sitting ended.

        Raises:
            UserFacingError: the output cannot be written.
        """
        self._began = datetime.fromisoformat(run.manifest["created"]).timestamp()
        self._end = recorded_up_to(run.folder)["out"]
        self._output = OutputWriter(run.folder)
        self._system = SystemMetrics(run.folder, _ThisProcess(), self._began)
        self._waited_for = ""

    def keep(self, progress: Progress) -> None:
        """Write what a report says; the same thing waited for is said once."""
        if progress.note:
            self.write(f"note: {progress.note}")
        elif progress.waiting_for:
            if progress.waiting_for != self._waited_for:
                self.write(progress.waiting_for)
        elif progress.phases:
            self.write(plain_line(progress))
        self._waited_for = progress.waiting_for

    def write(self, text: str) -> None:
        """Write lines of text."""
        lines: list[Line] = []
        for line in text.splitlines():
            said = line.encode(errors="replace")
            self._end += len(said) + 1
            lines.append(Line("out", self._end, said, b""))
        self._output.write(time.time() - self._began, lines)

    def close(self) -> None:
        """Keep no more."""
        self._system.stop()
        self._output.close()


@final
class _ThisProcess:
    """The tree of this process."""

    def processes(self) -> list[psutil.Process]:
        """Return this process and those that it started."""
        me = psutil.Process()
        return [me, *me.children(recursive=True)]
