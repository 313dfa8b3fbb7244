"""Starts a program, and reads what it prints into a spool or a terminal."""

import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import final

from runshelf.errors import UserFacingError
from runshelf.recorder.launch import Launch
from runshelf.recorder.lines import STREAMS, StreamName
from runshelf.recorder.spool import Spool
from runshelf.recorder.spooled_output import SpooledOutput, Take
from runshelf.recorder.terminal import Terminal, with_terminal

_POLL_SECONDS = 0.01


@final
class Program:
    """A program that runs in its own session."""

    def __init__(self, launch: Launch, shown_on: Mapping[StreamName, int], run: Path) -> None:
        """Start the program, with its streams shown on our descriptors `shown_on`.

        Raises:
            UserFacingError: the disk is full, or the file is not a program.
        """
        self._terminal: Terminal | None = None
        self._spooled: SpooledOutput | None = None
        terminals: dict[StreamName, int] = {s: d for s, d in shown_on.items() if os.isatty(d)}
        files = dict[StreamName, int]()
        with ExitStack() as stack:
            if terminals:
                with suppress(OSError):  # no terminals left: use files
                    self._terminal = Terminal(terminals)
                    stack.callback(self._terminal.close)
            if self._terminal is None or len(terminals) < len(STREAMS):
                spool = Spool(run)
                stack.callback(spool.remove)
                self._spooled = SpooledOutput(spool)
                stack.callback(self._spooled.close)
                files |= {stream: spool.open_for_program(stream) for stream in STREAMS}
            try:
                self._process = self._start(launch, files)
            finally:
                for descriptor in files.values():
                    os.close(descriptor)
            self._stack = stack.pop_all()
        self._ended = _open_pidfd(self._process.pid)
        if self._ended is not None:
            self._stack.callback(os.close, self._ended)
        if self._terminal is not None:
            self._terminal.begin(self._process.pid)

    @property
    def pid(self) -> int:
        """The process id, which is also that of its process group."""
        return self._process.pid

    @property
    def is_terminal(self) -> bool:
        """Whether the program has a terminal."""
        return self._terminal is not None

    @property
    def was_interrupted(self) -> bool:
        """Whether the user typed Ctrl-C at its terminal."""
        return self._terminal is not None and self._terminal.was_interrupted

    @property
    def times_emptied(self) -> int:
        """How many times the program truncated its own output."""
        return self._spooled.times_emptied if self._spooled else 0

    def wait(self, seconds: float, writes: Sequence[int] = (), *, reads: bool = True) -> None:
        """Wait until the program ends or prints (if `reads`), `writes` are ready, or time is up."""
        waits_for: list[int | None] = [self._ended]
        if self._spooled and reads:
            waits_for.append(self._spooled.descriptor)
        readable = [descriptor for descriptor in waits_for if descriptor is not None]
        if len(readable) < len(waits_for):  # this system cannot report one of the events
            seconds = min(seconds, _POLL_SECONDS)
        own_reads, own_writes = (
            self._terminal.descriptors(reads=reads) if self._terminal else ([], [])
        )
        select.select([*readable, *own_reads], [*writes, *own_writes], [], seconds)

    def read(self, take: Take) -> bool:
        """Pass new output to `take`; return whether more may be available at once."""
        more = self._spooled.read(take) if self._spooled else False
        return (self._terminal.read(take) if self._terminal else False) or more

    def pass_keys(self) -> None:
        """Forward typed keys to the program's terminal, if it has one."""
        if self._terminal:
            self._terminal.pass_keys()

    def finish(self, take: Take) -> None:
        """Pass on all remaining output."""
        if self._spooled:
            self._spooled.finish(take)
        if self._terminal:
            self._terminal.finish(take)

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def returncode(self) -> int:
        """Wait for the end, and return the return code as `subprocess` does."""
        return self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def close(self) -> None:
        """Release all descriptors and remove the spool."""
        self._stack.close()

    def _start(self, launch: Launch, files: Mapping[StreamName, int]) -> "subprocess.Popen[bytes]":
        terminal = self._terminal
        argv = list(launch.argv)
        # A script must see the path that it was called by.
        executable = argv[0] if "/" in argv[0] else launch.executable
        stdin, streams = None, dict(files)
        if terminal is not None:
            stdin = terminal.stdin
            for stream in STREAMS:
                slave = terminal.slave(stream)
                streams |= {} if slave is None else {stream: slave}
            argv = with_terminal(executable, argv, terminal.own_number)
            executable = argv[0]
        try:
            return subprocess.Popen(
                argv,
                executable=executable,
                cwd=launch.cwd,
                env=launch.environ,
                stdin=stdin,
                stdout=streams["out"],
                stderr=streams["err"],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserFacingError(
                f"`{launch.argv[0]}` cannot be started ({reason}): is it a program, or does its "
                "first line name one that exists?"
            ) from error


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends; None without pidfd."""
    with suppress(OSError, AttributeError):
        return os.pidfd_open(pid)
    return None
