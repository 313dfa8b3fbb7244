"""A program that runs beside the trainer: the page, or what people answer with in a terminal.

It is a process of its own, so that neither can take the other down. It shares nothing but files
with the trainer; it is started again when it dies, and ends when the trainer does, however that
comes about: its standard input is a pipe that only the trainer holds open.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, final

from runshelf.errors import UsageError, UserFacingError

READY_SECONDS = 30.0  # a program that has not said where it listens by then never will
PATIENCE = 5  # deaths in a row, each within a second of its start, until it is given up
GRACE_SECONDS = 5.0  # to end by itself


@final
class Page:
    """The labelling page as a process; a context manager.

    Args:
        arguments: for the Python interpreter; the program prints one JSON line with `address` once
            it listens.
        log: where what it says on stderr is kept.
    """

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._arguments, self._log = [sys.executable, *arguments], log
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()
        self._watch = threading.Thread(target=self._keep_alive, daemon=True)
        self._given_up = False
        self.address = ""

    def check(self) -> None:
        """Raise if the program cannot be kept alive.

        Raises:
            UserFacingError: it died again and again.
        """
        if self._given_up:
            raise UserFacingError(f"the page ended again and again: {_last_line(self._log)}")

    def __enter__(self) -> "Page":
        """Start it and wait until it listens.

        Raises:
            UsageError: it would not start.
        """
        self._process = self._start()
        try:
            self.address = _address(self._process)
        except UserFacingError:
            self._end()
            raise UsageError(_last_line(self._log)) from None
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let it end, make it end if it does not."""
        self._ending.set()
        self._end()
        self._watch.join(1.0)
        self._end()  # what was being started meanwhile

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            # A session of its own: Ctrl-C is for the trainer, which ends it in its own time.
            return subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def _keep_alive(self) -> None:
        """Start the program again whenever it dies, until the block ends."""
        early = 0
        while not self._ending.is_set() and self._process is not None:
            began = time.monotonic()
            self._process.wait()
            early = early + 1 if time.monotonic() - began < 1.0 else 0
            if early >= PATIENCE:
                self._given_up = True
                return
            if not self._ending.wait(0.05 * (1 + early)):
                _close(self._process)
                self._process = self._start()

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        _close(process)
        for act in (None, process.terminate, process.kill):
            if act:
                act()
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return


@final
class InTerminal:
    """A program that takes over the trainer's own terminal; a context manager.

    Whoever leaves it wants the trainer to stop, too.

    Args:
        arguments: for the Python interpreter.
    """

    address = ""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = [sys.executable, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> None:
        """Raise if the person has left.

        Raises:
            KeyboardInterrupt: they have.
            UsageError: the program could not use the terminal.
        """
        status = None if self._process is None else self._process.poll()
        if status == UsageError.exit_status:
            raise UsageError("`--teacher terminal` needs a terminal; try --teacher human")
        if status is not None:
            raise KeyboardInterrupt

    def __enter__(self) -> "InTerminal":
        """Start it in the same terminal and process group."""
        self._process = subprocess.Popen(self._arguments)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it, so that it gives the terminal back."""
        if self._process is None:
            return
        for act in (self._process.terminate, self._process.kill):
            if self._process.poll() is None:
                act()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return


def _address(process: "subprocess.Popen[bytes]") -> str:
    """Return the address a program prints once it listens.

    Raises:
        UserFacingError: it ended, or said nothing in time.
    """
    said: list[bytes] = []
    output = process.stdout
    reader = threading.Thread(target=_read_line, args=(output, said.append), daemon=True)
    reader.start()
    reader.join(READY_SECONDS)
    try:
        return str(json.loads(said[0])["address"])
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise UserFacingError("the page did not start") from error


def _read_line(output: "IO[bytes] | None", keep: Callable[[bytes], None]) -> None:
    if output is not None:
        keep(output.readline())


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    said = [line for line in lines if line.strip()]
    text = said[-1] if said else "it said nothing"
    return text.rpartition("error: ")[2]
