"""A terminal taken over for a while, and given back as it was, whichever way the while ends."""

import os
import select
import signal
import termios
from collections.abc import Sequence
from types import TracebackType
from typing import final

from backflip.labelling.terminal_view import RESET, Size, parse_keys

ESCAPE = 0.05  # seconds in which the rest of a key's bytes comes

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
_LEAVE = f"{RESET}\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
_TOGETHER, _SHOW = "\x1b[?2026h", "\x1b[?2026l"  # ignored by terminals that do not know them
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def has_terminal() -> bool:
    """Return whether standard input and output are a terminal that can be drawn on."""
    return os.isatty(0) and os.isatty(1) and os.environ.get("TERM", "dumb") != "dumb"


class Left(Exception):
    """The end: with which exit status, and what to say once the terminal is as it was."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status


@final
class Terminal:
    """The terminal while it is taken over; a context manager that gives it back.

    Args:
        keys: descriptor to read from.
        screen: descriptor to write to.
    """

    def __init__(self, keys: int, screen: int) -> None:
        self._keys, self._screen = keys, screen
        self._rest = b""
        self._drawn: list[str] = []
        self._drawn_size = Size(0, 0)
        self._signal = 0
        self._wakes, self._wake = os.pipe()
        self._before = termios.tcgetattr(keys)
        self._handlers = {number: signal.getsignal(number) for number in (*_ENDS, signal.SIGWINCH)}

    def __enter__(self) -> "Terminal":
        """Take it over: keys come one by one and unseen, the screen is a second one."""
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in self._handlers:
            signal.signal(number, self._heed)
        try:
            modes = termios.tcgetattr(self._keys)
            modes[0] &= ~(termios.IXON | termios.ICRNL)
            modes[3] &= ~(termios.ICANON | termios.ECHO)
            # Suspended, it would leave the terminal as it is; Ctrl-C stays a signal, for the
            # trainer as well.
            modes[6][termios.VSUSP] = b"\0"
            modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._keys, termios.TCSADRAIN, modes)
            self._write(_ENTER)
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back as it was."""
        self._give_back()

    def size(self) -> Size:
        """Return how many columns and lines it has now."""
        return Size(*os.get_terminal_size(self._screen))

    def draw(self, lines: Sequence[str], size: Size) -> None:
        """Show lines from the top; writes those that have changed."""
        before = self._drawn if size == self._drawn_size else []
        text = "" if before else "\x1b[2J"
        for row, line in enumerate(lines):
            if row >= len(before) or before[row] != line:
                text += f"\x1b[{row + 1};1H{line}{RESET}\x1b[K"
        if text:
            self._write(f"{_TOGETHER}{text}{_SHOW}")
        self._drawn, self._drawn_size = list(lines), size

    def keys(self, seconds: float) -> list[str]:
        """Return the keys pressed, waiting for the first one so long.

        Raises:
            Left: a signal wants the end, or the terminal has gone.
        """
        waits = min(seconds, ESCAPE) if self._rest else seconds
        ready, _, _ = select.select([self._keys, self._wakes], [], [], waits)
        if self._wakes in ready:
            os.read(self._wakes, 4096)
        if self._signal:
            raise Left(128 + self._signal)
        came = self._read() if self._keys in ready else b""
        keys, self._rest = parse_keys(self._rest + came, more=bool(came))
        return keys

    def _read(self) -> bytes:
        try:
            came = os.read(self._keys, 4096)
        except OSError:  # the other end was closed, or the shell has taken the terminal back
            came = b""
        if not came:
            raise Left(128 + signal.SIGHUP)
        return came

    def _heed(self, number: int, _: object) -> None:
        if number in _ENDS:
            self._signal = number

    def _write(self, text: str) -> None:
        rest = text.encode()
        try:
            while rest:
                rest = rest[os.write(self._screen, rest) :]
        except OSError as error:
            raise Left(128 + signal.SIGHUP) from error

    def _give_back(self) -> None:
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        # Whoever started us may have died and the shell have the terminal: that must not stop us.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            self._write(_LEAVE)
            # What was typed ahead is not meant for the shell.
            termios.tcsetattr(self._keys, termios.TCSAFLUSH, self._before)
        except (Left, termios.error):
            pass  # it has gone: nobody is there to see
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wakes)
        os.close(self._wake)
