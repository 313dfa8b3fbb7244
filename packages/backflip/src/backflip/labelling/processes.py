"""The labelling page and the labelling terminal as child processes of the trainer.

A crash of one process does not end the other; they share only files. The page is restarted when it
dies. It ends when the trainer ends for any reason, because its standard input is a pipe that only
the trainer holds open.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import final

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.opening import read_whole
from runshelf.store.writing import open_in_place

READY_SECONDS = 30.0  # maximum time to start listening
MAX_EARLY_DEATHS = 5  # in a row, each within a second of the start; then no more restarts
GRACE_SECONDS = 5.0  # to end before the next, stronger signal
NO_TERMINAL = "`--teacher terminal` needs a terminal; try --teacher human"


@final
class PageProcess:
    """The labelling page as a process; a context manager.

    Args:
        arguments: for the Python interpreter. The program prints one JSON line when it listens:
            its `address`, and `shown`, the address with words on how to log in, if needed.
        log: file that receives its stderr.
    """

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._arguments, self._log = [sys.executable, *arguments], log
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()
        self._watch = threading.Thread(target=self._keep_alive, daemon=True)
        self._failed = False
        self.address = self.shown = ""

    def check(self) -> None:
        """Raise if the page cannot be kept alive.

        Raises:
            UserFacingError: it died several times in a row right after its start.
        """
        if self._failed:
            raise UserFacingError(f"the page crashed repeatedly: {_last_line(self._log)}")

    def let_end(self) -> None:
        """Do nothing: people may look at the page until the trainer ends it."""

    def __enter__(self) -> "PageProcess":
        """Start the page and wait until it listens.

        Raises:
            UsageError: it did not start.
        """
        self._process = self._start()
        try:
            self.address, self.shown = _announced(self._process)
        except UserFacingError:
            self._end()
            raise UsageError(_last_line(self._log)) from None
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the page."""
        self._ending.set()
        self._end()
        self._watch.join(1.0)
        self._end()  # the watching thread may just have restarted it

    def _start(self) -> "subprocess.Popen[bytes]":
        log = open_in_place(self._log.parent, self._log.name, appends=True)
        try:
            # In a new session Ctrl-C does not reach the page; the trainer ends it.
            return subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)

    def _keep_alive(self) -> None:
        """Restart the page whenever it dies, until the context ends."""
        early = 0
        while not self._ending.is_set() and self._process is not None:
            began = time.monotonic()
            self._process.wait()
            early = early + 1 if time.monotonic() - began < 1.0 else 0
            if early >= MAX_EARLY_DEATHS:
                self._failed = True
                return
            if not self._ending.wait(0.05 * (1 + early)):
                _close(self._process)
                self._process = self._start()

    def _end(self) -> None:
        if self._process is not None:
            _close(self._process)
            _end(self._process, lambda: None, self._process.terminate, self._process.kill)


@final
class TerminalProcess:
    """The labelling program in the trainer's own terminal; a context manager.

    If the program ends first, because the person left it or because it failed, a thread interrupts
    the trainer at once, also in the middle of a phase.

    Args:
        arguments: for the Python interpreter.
    """

    address = shown = ""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = [sys.executable, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._may_end = threading.Event()
        self._watch = threading.Thread(target=self._interrupt_at_its_end, daemon=True)

    def check(self) -> None:
        """Raise if the program has ended.

        Raises:
            KeyboardInterrupt: the person left it.
            UsageError: it could not use the terminal.
        """
        if self._process is not None and self._process.poll() is not None:
            self._refuse_a_missing_terminal()
            raise KeyboardInterrupt

    def let_end(self) -> None:
        """Expect the program to end: training is over."""
        self._may_end.set()

    def __enter__(self) -> "TerminalProcess":
        """Start the program in the same terminal and process group."""
        self._process = subprocess.Popen(self._arguments)
        if threading.current_thread() is threading.main_thread():
            self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the program; it restores the terminal.

        Raises:
            UsageError: the interrupt came from a program that could not use the terminal.
        """
        self.let_end()
        if isinstance(error, KeyboardInterrupt):
            self._refuse_a_missing_terminal()
        if self._process is not None:
            _end(self._process, self._process.terminate, self._process.kill)

    def _refuse_a_missing_terminal(self) -> None:
        if self._process is not None and self._process.poll() == UsageError.exit_status:
            raise UsageError(NO_TERMINAL)

    def _interrupt_at_its_end(self) -> None:
        if self._process is not None:
            self._process.wait()
            if not self._may_end.is_set() and callable(signal.getsignal(signal.SIGINT)):
                # To this thread, which it wakes if it sleeps. If Ctrl-C is ignored, `check` raises.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _end(process: "subprocess.Popen[bytes]", *steps: Callable[[], None]) -> None:
    """Take the steps that end a process, one after another, until it has ended."""
    for step in steps:
        step()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def _announced(process: "subprocess.Popen[bytes]") -> tuple[str, str]:
    """Return `address` and `shown` as a page prints them when it listens.

    Raises:
        UserFacingError: it ended, or printed nothing in time.
    """
    lines: list[bytes] = []
    output = process.stdout
    assert output is not None
    reader = threading.Thread(target=lambda: lines.append(output.readline()), daemon=True)
    reader.start()
    reader.join(READY_SECONDS)
    try:
        fields = json.loads(lines[0])
        return str(fields["address"]), str(fields.get("shown", fields["address"]))
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise UserFacingError("the page did not start") from error


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _last_line(log: Path) -> str:
    text = (read_whole(log.parent, log.name) or b"").decode(errors="replace")
    lines = text.strip().split("\n")
    return lines[-1].rpartition("error: ")[2] or "it printed no error"
