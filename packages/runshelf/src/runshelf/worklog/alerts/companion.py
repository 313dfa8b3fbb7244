"""Watches the run that this process records, from a process of its own.

Nothing that hangs or fails there reaches the run. The companion gets what to watch on its stdin,
so that no address is in a command line; the end of stdin tells it that the recorder has ended.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import final

import psutil

from runshelf.store.liveness import process
from runshelf.worklog.alerts.channels import DEADLINE

MODULE = "runshelf.worklog.alerts.companion_process"
PATIENCE = DEADLINE + 10.0  # seconds that the last alerts of a run may take
_SAY_SO = 2.0  # seconds of waiting after which the user is told
Show = Callable[[str], object]


@contextlib.contextmanager
def watched(
    home: Path, rules: Sequence[str], channels: Sequence[str], show: Show, run: str | None = None
) -> Generator[None, None, None]:
    """Watch the run that this process records in the block; wait for its last alerts at the end.

    The block never fails because of the companion.

    Args:
        home: the home of the run.
        rules: valid rules, as of `alerts --rule`.
        channels: where to send alerts, valid, as of `alerts --to`.
        show: shows one line to the user; it is called by another thread.
        run: the id of the run if it is resumed; None if it is new.
    """
    asked = {"rules": list(rules), "channels": list(channels), "run": run}
    asked |= {"home": str(home.absolute()), "recorder": process()._asdict()}
    try:
        companion = _Companion(json.dumps(asked), show)
    except OSError as error:
        show(f"alerts are not watched: no process can be started ({error.strerror})")
        yield
        return
    try:
        yield
    finally:
        companion.end()


@final
class _Companion:
    """The process, and a thread that shows what it prints."""

    def __init__(self, asked: str, show: Show) -> None:
        self._show, self._is_ending = show, False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C and a closed terminal are for the run
        )
        self._tell(asked)
        self._reader = threading.Thread(target=self._read, name="alerts", daemon=True)
        self._reader.start()

    def end(self) -> None:
        """Let the companion look a last time; stop it if it takes too long, or at Ctrl-C."""
        self._is_ending = True
        self._tell("")
        try:
            if not self._has_ended(_SAY_SO):
                self._show("sending the last alerts; Ctrl-C gives up")
                if not self._has_ended(PATIENCE - _SAY_SO):
                    self._show("the last alerts could not be sent in time")
        except KeyboardInterrupt:
            self._show("the last alerts were not sent")
        finally:
            self._kill()

    def _tell(self, line: str) -> None:
        """Write a line; an empty one closes the pipe.

        Children that this process forked may hold the pipe, too, so the end is also a line.
        """
        assert self._process.stdin
        with contextlib.suppress(OSError):  # it has ended
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        if not line:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _has_ended(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            self._reader.join(1.0)
        return self._process.returncode is not None

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._show(line.decode(errors="replace").rstrip("\n"))
        status = self._process.wait()
        if not self._is_ending and status:
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            self._show(f"alerts have ended ({how}); the run goes on without them")

    def _kill(self) -> None:
        """Kill the process, and the commands that it runs."""
        with contextlib.suppress(psutil.Error):
            left = psutil.Process(self._process.pid).children(recursive=True)
            for one in left:
                with contextlib.suppress(psutil.Error):
                    one.kill()
        self._process.kill()
        self._process.wait()
