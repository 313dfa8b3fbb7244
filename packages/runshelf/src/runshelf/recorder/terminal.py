"""Gives a program its own pseudo-terminal, and forwards between it and the user's terminal.

Keys are forwarded as they are typed, so that the program's terminal turns Ctrl-C into a signal. The
user's terminal gets its settings back, however the program ends.
"""

import fcntl
import os
import pty
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, final

from runshelf.recorder.lines import Splitter, StreamName
from runshelf.recorder.spooled_output import Take

_CHUNK = 1 << 16
_TYPED_AHEAD = 1 << 12
_STDIN = 0

# A session leader must request its controlling terminal itself.
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
try:
    os.execv(sys.argv[2], sys.argv[3:])
except OSError as error:
    sys.exit(f"runshelf: error: `{sys.argv[3]}` cannot be started ({error.strerror})")
"""


def with_terminal(executable: str, argv: Sequence[str], descriptor: int) -> list[str]:
    """Return a command line that takes a controlling terminal, then becomes the program."""
    words = ["-I", "-S", "-c", TAKE_TERMINAL, str(descriptor), executable, *argv]
    return [sys.executable, *words]


@final
class Terminal:
    """The pseudo-terminals of one program: one per stream of ours that is a terminal."""

    def __init__(self, shown_on: dict[StreamName, int]) -> None:
        """Open pseudo-terminals for the streams in `shown_on`, which has our descriptors of them.

        Raises:
            OSError: the system has no terminals left.
        """
        self._shown_on = shown_on
        self._masters: dict[StreamName, int] = {}
        self._slaves: dict[StreamName, int] = {}
        self._splitters: dict[StreamName, Splitter] = {}
        self._was: list[Any] | None = None
        self._typed = b""
        self._reads_keys = os.isatty(_STDIN)
        self._winch: Any = None
        self.was_interrupted = False
        self.pid = 0
        for stream, descriptor in shown_on.items():
            self._masters[stream], self._slaves[stream] = pty.openpty()
            self._splitters[stream] = Splitter(stream)
            os.set_blocking(self._masters[stream], False)
            with suppress(termios.error):
                termios.tcsetattr(
                    self._slaves[stream], termios.TCSANOW, termios.tcgetattr(descriptor)
                )
        self._own: StreamName = next(iter(shown_on))  # its terminal is the controlling one
        self._resize()

    @property
    def stdin(self) -> int | None:
        """The program's stdin: its terminal if ours is one, else None to inherit ours."""
        return self._slaves[self._own] if self._reads_keys else None

    def slave(self, stream: StreamName) -> int | None:
        """Return the program's descriptor of a stream; None if it is not a terminal."""
        return self._slaves.get(stream)

    @property
    def own_number(self) -> int:
        """The program's descriptor that becomes its controlling terminal."""
        return 1 if self._own == "out" else 2

    def begin(self, pid: int) -> None:
        """Start forwarding for the program with process id `pid`."""
        self.pid = pid
        for descriptor in self._slaves.values():
            os.close(descriptor)
        self._slaves.clear()
        with suppress(ValueError):  # not the main thread
            self._winch = signal.signal(signal.SIGWINCH, self._resize)
        self._enter_raw_mode()

    def descriptors(self, *, reads: bool) -> tuple[list[int], list[int]]:
        """Return descriptors to wait for: readable, writable. Without `reads`, only for keys."""
        self._enter_raw_mode()
        masters = list(self._masters.values()) if reads else []
        keys = [_STDIN] if self._was is not None and len(self._typed) < _TYPED_AHEAD else []
        writes = [self._masters[self._own]] if self._typed and self._own in self._masters else []
        return [*masters, *keys], writes

    def read(self, take: Take) -> bool:
        """Forward keys, and pass output to `take`; return whether there may be more."""
        self.pass_keys()
        is_full = False
        for stream in list(self._masters):
            data = self._read(stream)
            if data:
                lines, rest = self._splitters[stream].feed(data)
                take(lines, {stream: rest})
            is_full = is_full or len(data) == _CHUNK
        return is_full

    def finish(self, take: Take) -> None:
        """Pass on all remaining output, and unfinished lines."""
        for _ in range(1000):  # a surviving process may print without end
            if not self.read(take):
                break
        take([line for one in self._splitters.values() for line in one.flush()], {})

    def close(self) -> None:
        """Restore the user's terminal, and close the descriptors."""
        self._restore()
        if self._winch is not None:
            signal.signal(signal.SIGWINCH, self._winch)
        for descriptor in (*self._masters.values(), *self._slaves.values()):
            os.close(descriptor)
        self._masters.clear()
        self._slaves.clear()

    def _read(self, stream: StreamName) -> bytes:
        try:
            data = os.read(self._masters[stream], _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:  # the other side is closed
            data = b""
        if not data:
            os.close(self._masters.pop(stream))
        return data

    def pass_keys(self) -> None:
        """Forward typed keys, as far as the program accepts them."""
        takes_more = self._was is not None and len(self._typed) < _TYPED_AHEAD
        if takes_more and select.select([_STDIN], [], [], 0)[0]:
            self._take_typed()
        while self._typed and self._own in self._masters:
            try:
                self._typed = self._typed[os.write(self._masters[self._own], self._typed) :]
            except BlockingIOError:
                return
            except OSError:
                self._typed = b""

    def _take_typed(self) -> None:
        try:
            typed = os.read(_STDIN, _CHUNK)
        except OSError:
            typed = b""
        if not typed:
            self._reads_keys = False
            self._restore()
            return
        before, is_suspend, after = self._until_suspend(typed)
        self._typed += before
        if is_suspend:
            self._suspend()
            self._typed += after

    def _until_suspend(self, typed: bytes) -> tuple[bytes, bool, bytes]:
        """Note Ctrl-C; return the keys before Ctrl-Z, whether it was typed, and the keys after."""
        try:
            settings: list[Any] = termios.tcgetattr(self._masters[self._own])
            foreground = os.tcgetpgrp(self._masters[self._own])
        except (OSError, KeyError, termios.error):
            return typed, False, b""
        if not settings[3] & termios.ISIG:
            return typed, False, b""
        self.was_interrupted |= settings[6][termios.VINTR] in typed
        if foreground != self.pid:  # a shell inside the program handles its own jobs
            return typed, False, b""
        before, found, after = typed.partition(settings[6][termios.VSUSP])
        return before, bool(found), after

    def _suspend(self) -> None:
        """Stop the program and ourselves, as Ctrl-Z does, until a shell continues us.

        The system would ignore a stop request by the program's terminal, because no process of the
        program's session has a parent in that session.
        """
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGSTOP)
        self._restore()
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        self._enter_raw_mode()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGCONT)

    def _enter_raw_mode(self) -> None:
        """Switch the user's terminal to raw mode while we are in the foreground."""
        if self._was is None and self._reads_keys and _in_foreground():
            with suppress(termios.error):
                was = termios.tcgetattr(_STDIN)
                tty.setraw(_STDIN, termios.TCSADRAIN)
                self._was = was

    def _restore(self) -> None:
        if self._was is not None:
            was, self._was = self._was, None
            with suppress(termios.error, OSError):
                termios.tcsetattr(_STDIN, termios.TCSADRAIN, was)

    def _resize(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Set the size of the program's terminals to the size of ours."""
        for stream, shown_on in self._shown_on.items():
            descriptor = self._slaves.get(stream, self._masters.get(stream))
            if descriptor is not None:
                with suppress(OSError):
                    size = fcntl.ioctl(shown_on, termios.TIOCGWINSZ, b"\0" * 8)
                    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, size)


def _in_foreground() -> bool:
    with suppress(OSError):
        return os.tcgetpgrp(_STDIN) == os.getpgrp()
    return False
