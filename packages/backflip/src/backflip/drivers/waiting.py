"""Waiting for a compiled program without being deaf to Ctrl-C, which C code that waits is."""

import threading
import time
from collections.abc import Callable
from typing import Any

import jax

LOOKS_UP = 0.2  # seconds


def wait_for(results: Any, meanwhile: Callable[[float], None] = lambda _: None) -> Any:
    """Return the arrays of `results` when they are computed.

    Args:
        results: what a compiled function returned at once.
        meanwhile: is told every now and then how many seconds have passed.
    """
    began, done = time.perf_counter(), threading.Event()

    def watch() -> None:
        try:
            jax.block_until_ready(results)
        finally:
            done.set()  # whatever went wrong is raised where the results are used

    threading.Thread(target=watch, daemon=True).start()
    while not done.wait(LOOKS_UP):
        meanwhile(time.perf_counter() - began)
    return results
