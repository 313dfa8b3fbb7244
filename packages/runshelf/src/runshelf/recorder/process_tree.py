"""Finds the processes of a program: itself and all descendants, also in other sessions."""

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
class ProcessTree:
    """The processes of one program, which this process starts after creating the tree.

    Where the system allows it, this process adopts orphaned descendants, so that none is missed.
    """

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._others = {child.pid for child in _children(self._me, recursive=False)}
        self._known: set[psutil.Process] = set()
        self._main = 0
        adopt_orphans(True)

    def begin(self, pid: int) -> None:
        """Set the program's process id."""
        self._main = pid

    def processes(self) -> list[psutil.Process]:
        """Return the live processes; reap zombies and leave them out."""
        found: set[psutil.Process] = set()
        for child in _children(self._me, recursive=False):
            if child.pid not in self._others:
                found |= {child, *_children(child, recursive=True)}
        # Without adoption, an orphan is no longer among our descendants.
        found |= self._known
        self._known = {one for one in found if one.pid not in self._others and self._lives(one)}
        return sorted(self._known, key=lambda process: process.pid)

    def kill(self) -> list[int]:
        """Kill every process of the tree, and return the ids of those that survive."""
        deadline = time.monotonic() + _LAST_WAIT_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            send(left, signal.SIGKILL)
            time.sleep(0.01)
        return [process.pid for process in left]

    def close(self) -> None:
        """Stop adopting orphans."""
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
    """Send a signal to those processes that still exist."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def _children(process: psutil.Process, *, recursive: bool) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children(recursive=recursive)
    return []
