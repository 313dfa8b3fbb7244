"""The processes of a program: itself and all that it started, also in other sessions."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import final

import psutil

from runshelf.recorder.linux import adopt_orphans

_LAST_WAIT_SECONDS = 5.0


@final
class Tree:
    """Finds the processes of one program, started by this process after the tree was made.

    Where the system allows it this process adopts what they leave behind, so that none escapes.
    """

    def __init__(self) -> None:
        """Begin before the program is started."""
        self._me = psutil.Process()
        self._not_ours = {child.pid for child in _children(self._me, recursive=False)}
        self._known: set[psutil.Process] = set()
        self._main = 0
        adopt_orphans(True)

    def begin(self, pid: int) -> None:
        """Say which process is the program."""
        self._main = pid

    def processes(self) -> list[psutil.Process]:
        """Return the processes that live now; zombies are reaped and not returned."""
        found: set[psutil.Process] = set()
        for child in _children(self._me, recursive=False):
            if child.pid not in self._not_ours:
                found |= {child, *_children(child, recursive=True)}
        # Without adoption a process whose parent is gone is nobody's child.
        found |= self._known
        self._known = {one for one in found if one.pid not in self._not_ours and self._lives(one)}
        return sorted(self._known, key=lambda process: process.pid)

    def kill(self) -> list[int]:
        """Kill every process of the tree, and return which live on all the same."""
        deadline = time.monotonic() + _LAST_WAIT_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            send(left, signal.SIGKILL)
            time.sleep(0.01)
        return [process.pid for process in left]

    def close(self) -> None:
        """Adopt no more."""
        adopt_orphans(False)

    def _lives(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                return process.is_running()
            if process.pid != self._main and process.ppid() == self._me.pid:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return False


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, as far as they still live."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def _children(process: psutil.Process, *, recursive: bool) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children(recursive=recursive)
    return []
