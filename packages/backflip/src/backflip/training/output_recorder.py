"""Records the output and the system metrics of `train` and `teach` in the run's folder.

`backflip run` records another program from outside. `train` and `teach` record themselves, so that
they can be called from Python and resumed.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, final

import psutil

from backflip.training.progress import Progress, plain_line
from runshelf.recorder.lines import Line
from runshelf.recorder.output_log import OutputWriter
from runshelf.recorder.output_reader import recorded_up_to, seconds_of_last_line
from runshelf.recorder.system_metrics import SystemMetrics
from runshelf.snapshot.capture import capture, without_secrets
from runshelf.snapshot.secrets import find_secrets
from runshelf.store.run import Capture, Run, RunInfo, open_run
from runshelf.store.times import seconds_of


class Captured(NamedTuple):
    """The recorded context of a run.

    Attributes:
        argv: the command line, with secrets masked.
        info: name, group, question and tags, with secrets masked.
        keep: saves code, packages and machine, given the run's folder.
    """

    argv: list[str]
    info: RunInfo
    keep: Capture


def captured(
    home: Path, cwd: Path, argv: Sequence[str], info: RunInfo, say: Callable[[str], None]
) -> Captured:
    """Return the context to record with a run.

    Args:
        home: the home of the run.
        cwd: its working folder.
        argv: the command line.
        info: name, group, question and tags; with a parent in this home, the parent's code is kept.
        say: reports what is masked and what is left out.
    """
    secrets = find_secrets(argv, os.environ)
    folder = home / "runs" / info.parent if info.parent else None
    parent = open_run(folder) if folder and folder.is_dir() else None
    keep = capture(
        home,
        argv,
        say=say,
        cwd=cwd,
        secrets=secrets,
        interpreter=sys.executable,
        parent=parent,
    )
    return Captured(list(secrets.argv), without_secrets(info, secrets), keep)


@final
class OutputRecorder:
    """Writes a run's `output.log` and `metrics-system.jsonl`."""

    def __init__(self, run: Run) -> None:
        """Begin, or continue after an earlier session.

        Raises:
            UserFacingError: the output cannot be written.
        """
        self._began = time.monotonic() - _seconds_since_start(run)
        self._end = recorded_up_to(run.folder)["out"]
        self._output = OutputWriter(run.folder)
        self._system = SystemMetrics(run.folder, _ThisProcess(), time.monotonic() - self._began)
        self._waited_for = ""

    def record(self, progress: Progress) -> None:
        """Write a progress report; repeated reports of the same wait are written once."""
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
            encoded = line.encode(errors="replace")
            self._end += len(encoded) + 1
            lines.append(Line("out", self._end, encoded, b""))
        self._output.write(time.monotonic() - self._began, lines)

    def close(self) -> None:
        """Stop recording."""
        self._system.stop()
        self._output.close()


def _seconds_since_start(run: Run) -> float:
    """Return the seconds since a run was created; at least those of its last line of output."""
    created = seconds_of(run.manifest["created"])
    since = 0.0 if created is None else time.time() - created
    return max(since, seconds_of_last_line(run.folder))


@final
class _ThisProcess:
    """The tree of this process, for `SystemMetrics`."""

    def processes(self) -> list[psutil.Process]:
        """Return this process and its descendants."""
        me = psutil.Process()
        return [me, *me.children(recursive=True)]
