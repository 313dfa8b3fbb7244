"""A line on stderr that shows how far an operation on many runs is."""

import sys
import time
from typing import final

from runshelf.durations import duration
from runshelf.terminal_text import put

# A longer command prints its progress.
_PATIENCE_SECONDS = 1.0
_CLEARED = "\r\x1b[K"  # the line, on a terminal


@final
class ProgressLine:
    """Prints the progress of a long operation on stderr."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._next = time.monotonic() + _PATIENCE_SECONDS
        self._is_shown = False  # on a terminal: a text without an end

    def __call__(self, done: int, total: int, to_go: float = 0.0) -> None:
        """On a terminal, replace the previous line; elsewhere, print a line every few seconds."""
        if done == total:
            self._clear()
        elif time.monotonic() >= self._next:
            left = f", {duration(to_go)} to go" if to_go else ""
            self._show(f"{self._activity} {done:,} of {total:,} runs{left}")

    def _clear(self) -> None:
        """Remove the text before the next line is printed."""
        if self._is_shown:
            sys.stderr.write(_CLEARED)
            sys.stderr.flush()
            self._is_shown = False

    def _show(self, text: str) -> None:
        self._is_shown = sys.stderr.isatty()
        self._next = time.monotonic() + (0.2 if self._is_shown else 3.0)
        if self._is_shown:
            sys.stderr.write(_CLEARED)
        put(text, end="" if self._is_shown else "\n", file=sys.stderr, flush=self._is_shown)
