"""Progress of short work as lines on stderr."""

import sys
import time
from collections.abc import Callable

from runshelf.terminal_text import put

# Seconds before the first line of progress, and between two lines.
_SILENT_SECONDS, _SECONDS_BETWEEN = 2.0, 5.0


def progress_lines() -> Callable[[str, float], None]:
    """Return a callback that prints progress on stderr, at first after two seconds."""
    next_at = time.monotonic() + _SILENT_SECONDS

    def on_progress(what: str, share: float) -> None:
        nonlocal next_at
        if time.monotonic() < next_at:
            return
        next_at = time.monotonic() + _SECONDS_BETWEEN
        done = f" {share:.0%}" if share else ""
        put(f"backflip: {what}{done}", file=sys.stderr)

    return on_progress
