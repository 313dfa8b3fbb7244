"""Waiting for a compiled program so that Ctrl-C still works."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax

INTERVAL = 0.2  # seconds


def wait_for(results: Any, meanwhile: Callable[[float], None] = lambda _: None) -> Any:
    """Return the arrays of `results` when they are computed.

    Waiting in C code would block Ctrl-C, so a thread waits.

    Args:
        results: what a compiled function returned at once.
        meanwhile: called every `INTERVAL` with the seconds that have passed.
    """
    began, done = time.perf_counter(), threading.Event()

    def watch() -> None:
        with suppress(Exception):  # errors are raised where the results are used
            jax.block_until_ready(results)
        done.set()

    threading.Thread(target=watch, daemon=True).start()
    while not done.wait(INTERVAL):
        meanwhile(time.perf_counter() - began)
    return results
