"""A full-screen terminal that is restored however the program ends."""

import os
import select
import signal
import termios
from collections.abc import Sequence
from typing import final

from backflip.labelling.terminal.keys import parse_keys
from backflip.labelling.terminal.layout import Size
from backflip.labelling.terminal.text import RESET

ESCAPE = 0.05  # seconds to wait for the rest of an escape sequence

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
_LEAVE = f"{RESET}\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
# Synchronised output: the terminal shows all changes between the two at once, if it supports this.
_BEGIN_UPDATE, _END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def has_terminal() -> bool:
    """Return whether standard input and output are a terminal that can show pictures."""
    return os.isatty(0) and os.isatty(1) and os.environ.get("TERM", "dumb") != "dumb"


class Quit(Exception):
    """Ends the program, with an exit status and a message for the restored terminal."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status


@final
class Terminal:
    """A terminal in full-screen mode; a context manager that restores it.

    Args:
        keys: file descriptor to read from.
        screen: file descriptor to write to.
    """

    def __init__(self, keys: int, screen: int) -> None:
        self._keys, self._screen = keys, screen
        self._rest = b""
        self._drawn: list[str] = []
        self._drawn_size = Size(0, 0)
        self._signal = 0
        self._wakes, self._wake = os.pipe()
        self._before = termios.tcgetattr(keys)
        self._handlers = {
            number: signal.getsignal(number) for number in (*_END_SIGNALS, signal.SIGWINCH)
        }

    def __enter__(self) -> "Terminal":
        """Switch to the alternate screen and read single keys without echo."""
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in self._handlers:
            signal.signal(number, self._on_signal)
        try:
            modes = termios.tcgetattr(self._keys)
            modes[0] &= ~(termios.IXON | termios.ICRNL)
            modes[3] &= ~(termios.ICANON | termios.ECHO)
            # No suspend key: it would leave the terminal in this mode. Ctrl-C stays a signal, which
            # also reaches the trainer.
            modes[6][termios.VSUSP] = b"\0"
            modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._keys, termios.TCSADRAIN, modes)
            self._write(_ENTER)
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the terminal."""
        self._restore()

    def size(self) -> Size:
        """Return the current number of columns and lines."""
        return Size(*os.get_terminal_size(self._screen))

    def draw(self, lines: Sequence[str], size: Size) -> None:
        """Show lines from the top; write only the changed ones."""
        before = self._drawn if size == self._drawn_size else []
        text = "" if before else "\x1b[2J"
        for row, line in enumerate(lines):
            if row >= len(before) or before[row] != line:
                text += f"\x1b[{row + 1};1H{line}{RESET}\x1b[K"
        if text:
            self._write(f"{_BEGIN_UPDATE}{text}{_END_UPDATE}")
        self._drawn, self._drawn_size = list(lines), size

    def keys(self, seconds: float) -> list[str]:
        """Return the pressed keys; wait at most `seconds` for the first one.

        Raises:
            Quit: a signal asks to end, or the terminal is closed.
        """
        timeout = min(seconds, ESCAPE) if self._rest else seconds
        ready, _, _ = select.select([self._keys, self._wakes], [], [], timeout)
        if self._wakes in ready:
            os.read(self._wakes, 4096)
        if self._signal:
            raise Quit(128 + self._signal)
        data = self._read() if self._keys in ready else b""
        keys, self._rest = parse_keys(self._rest + data, more=bool(data))
        return keys

    def _read(self) -> bytes:
        try:
            data = os.read(self._keys, 4096)
        except OSError:  # the other end is closed, or the shell has the terminal again
            data = b""
        if not data:
            raise Quit(128 + signal.SIGHUP)
        return data

    def _on_signal(self, number: int, _: object) -> None:
        if number in _END_SIGNALS:
            self._signal = number

    def _write(self, text: str) -> None:
        rest = text.encode()
        try:
            while rest:
                rest = rest[os.write(self._screen, rest) :]
        except OSError as error:
            raise Quit(128 + signal.SIGHUP) from error

    def _restore(self) -> None:
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        # If the parent died and the shell has the terminal, writing would suspend this process.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            self._write(_LEAVE)
            # Discard pending input: it is not meant for the shell.
            termios.tcsetattr(self._keys, termios.TCSAFLUSH, self._before)
        except (Quit, termios.error):
            pass  # the terminal is closed
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wakes)
        os.close(self._wake)
