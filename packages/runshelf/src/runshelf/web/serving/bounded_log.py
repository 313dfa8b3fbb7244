"""Messages of a server on stderr, so few that no client can fill a disk with them."""

import sys
import time
from collections.abc import Callable
from typing import final

from runshelf.terminal_text import harmless, put

MOST_LINES = 20
PERIOD_SECONDS = 60.0
LONGEST_LINE = 500


@final
class BoundedLog:
    """Writes at most `MOST_LINES` lines in `PERIOD_SECONDS`, and then how many it left out.

    Args:
        write: writes one line.
        clock: returns the time in seconds.
    """

    def __init__(
        self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._began, self._lines, self._left_out = clock(), 0, 0

    def line(self, message: str) -> None:
        """Write a message as one line of printable characters."""
        if self._clock() - self._began >= PERIOD_SECONDS:
            self._begin_period()
        if self._lines >= MOST_LINES:
            self._left_out += 1
            return
        self._lines += 1
        text = " ".join(message.split())[:LONGEST_LINE]
        self._write(harmless(text) + "\n")

    def _begin_period(self) -> None:
        if self._left_out:
            self._write(f"runshelf.web: {self._left_out} more messages like these\n")
        self._began, self._lines, self._left_out = self._clock(), 0, 0


def _to_stderr(line: str) -> None:
    put(line, file=sys.stderr, end="")


_log = BoundedLog(_to_stderr)


def report(message: str) -> None:
    """Write a message of this process's server to stderr."""
    _log.line(message)
