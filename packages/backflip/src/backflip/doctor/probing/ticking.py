"""Progress of work that says nothing itself."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from backflip.doctor.probing.outcome import OnProgress

PAUSE = 1.0  # seconds between two calls


@contextmanager
def ticking(on_progress: OnProgress | None, what: str, share: float) -> Generator[None]:
    """Call back at once and then each second, with what is done and for how long.

    Args:
        on_progress: receives the text and the share. It is called from a thread.
        what: what is done.
        share: the share of all work that is done.
    """
    if on_progress is None:
        yield
        return
    on_progress(what, share)
    start, is_over = time.monotonic(), threading.Event()

    def tick() -> None:
        while not is_over.wait(PAUSE):
            on_progress(f"{what}, for {time.monotonic() - start:.0f} s", share)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
