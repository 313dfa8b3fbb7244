"""Back-pressure: a program that prints faster than it can be recorded is made to wait.

A pipe would do so by itself; the spool is files, which take everything until memory is full. So
the processes of such a program are stopped, and continued once the recorder has caught up.

Nothing is left stopped: a file in the spool names the processes, and a guard, a process of its own,
continues them as soon as the recorder is gone. Should both be killed, the next who salvages does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import psutil

from backflip.archive.files import write_whole
from backflip.archive.liveness import Process, is_alive, process
from backflip.archive.recorder.spool import Spool
from backflip.archive.recorder.tree import Tree
from backflip.core.errors import BackflipError

MOST = 64 << 20
LEAST = 16 << 20
_HELD = "held.json"
_AGAIN_SECONDS = 0.1

# Its input ends when the recorder does; until then it takes no more than it must.
_GUARD = """
import sys
sys.stdin.buffer.read()
from pathlib import Path
from backflip.archive.recorder.holding import release
release(Path(sys.argv[1]))
"""
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE)


@final
class Hold:
    """Stops the processes of a program while too much of what it prints waits, no other's."""

    def __init__(self, spool: Spool, tree: Tree) -> None:
        """Hold nothing yet.

        Args:
            spool: what the program prints into.
            tree: knows the program's processes.
        """
        self._spool = spool
        self._tree = tree
        self._held: set[Process] = set()
        self._most = MOST
        self._looked = 0.0
        self._guard: subprocess.Popen[bytes] | None = None

    def check(self, backlog: int) -> None:
        """Stop the program if `backlog` bytes are too much, continue it once they are few."""
        if backlog > self._most and time.monotonic() - self._looked > _AGAIN_SECONDS:
            self._stop()
            self._looked = time.monotonic()
        elif self._held and backlog < LEAST:
            self._release()

    def relent(self, backlog: int) -> None:
        """Let the program heed a signal: it may print as much again before it is stopped."""
        self._most = max(backlog, 0) + MOST
        self._release()

    def close(self) -> None:
        """Hold nothing any more."""
        self._release()
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.kill()
            self._guard.wait()

    def _stop(self) -> None:
        """Stop the program at once, then those it has started, which takes longer to find out."""
        self._start_guard()  # first: a recorder killed between the two would leave it stopped
        self._stop_some(self._tree.main())
        self._stop_some(self._tree.processes())

    def _stop_some(self, processes: Sequence[psutil.Process]) -> None:
        """Stop what runs: not what somebody else has stopped, which would be continued with it."""
        running = {process(one.pid) for one in processes if _runs(one)}
        if not running:
            return
        try:
            _write(self._spool.folder, self._held | running)
        except (OSError, BackflipError):  # who is not named would not be continued
            return
        self._held |= running
        for one in running:
            _send(one, signal.SIGSTOP)

    def _release(self) -> None:
        if self._held:
            release(self._spool.folder)
            self._held.clear()

    def _start_guard(self) -> None:
        if self._guard is None:
            with suppress(OSError):
                self._guard = subprocess.Popen(
                    [sys.executable, "-P", "-c", _GUARD, str(self._spool.folder)],
                    cwd="/",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._tree.leave_out(self._guard.pid)


def release(folder: Path) -> None:
    """Continue the processes that a recorder has stopped, by what its spool's `folder` says."""
    path = folder / _HELD
    with suppress(OSError, ValueError, TypeError):
        held: list[Any] = json.loads(path.read_bytes())
        for fields in held:
            _send(Process(*fields), signal.SIGCONT)
        path.unlink()


def _write(folder: Path, held: set[Process]) -> None:
    write_whole(folder / _HELD, json.dumps(sorted(held)).encode())


def _send(named: Process, number: int) -> None:
    """Send a signal to a process, if it is the one that was named."""
    if is_alive(named):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(named.pid, number)


def _runs(one: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return one.status() not in _STOPPED
    return False
