"""A line on stderr that shows how far an operation on many runs is."""

import sys
import time
from typing import final

from runshelf.durations import duration
from runshelf.terminal_text import put

# A longer command prints its progress.
_PATIENCE_SECONDS = 1.0


@final
class ProgressLine:
    """Prints the progress of a long operation on stderr."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._next = time.monotonic() + _PATIENCE_SECONDS

    def __call__(self, done: int, total: int, to_go: float = 0.0) -> None:
        """On a terminal, replace the previous line; elsewhere, print a line every few seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (0.2 if sys.stderr.isatty() else 3.0)
        left = f", {duration(to_go)} to go" if to_go else ""
        text = f"{self._activity} {done:,} of {total:,} runs{left}"
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            put(text if done < total else "", end="", file=sys.stderr, flush=True)
        elif done < total:
            put(text, file=sys.stderr)
