"""The progress of a sweep on stderr: one line that changes on a terminal, else a line at times."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from runshelf.durations import duration
from runshelf.sweeps.driver import Progress
from runshelf.terminal_text import put

_LINE_SECONDS = 10.0


@contextmanager
def display(name: str) -> Generator[Callable[[Progress], None], None, None]:
    """Yield a function that shows the progress."""
    if not sys.stderr.isatty():
        yield _lines(name)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
        yield lambda progress: live.update(Text(f"{name}: {line_of(progress)}"))


def _lines(name: str) -> Callable[[Progress], None]:
    shown, last = -1, 0.0

    def show(progress: Progress) -> None:
        nonlocal shown, last
        is_end = progress.done == progress.blocks and not progress.more
        late = time.monotonic() - last >= _LINE_SECONDS
        if progress.done != shown and (late or is_end):
            shown, last = progress.done, time.monotonic()
            put(f"runshelf: {name}: {line_of(progress)}", file=sys.stderr)

    return show


def line_of(progress: Progress) -> str:
    """Return the progress as one line."""
    more = " or more" if progress.more else ""
    parts = [f"{progress.done} of {progress.blocks}{more} blocks"]
    parts += [f"{progress.failed} failed"] if progress.failed else []
    parts += [f"{progress.running} running"] if progress.running else []
    if progress.left is not None and progress.done < progress.blocks:
        parts.append(f"about {duration(progress.left)} left")
    parts.append(f"{duration(progress.spent)} of running time spent")
    parts += [f"cost {progress.cost:.2f}"] if progress.cost is not None else []
    return ", ".join(parts)
