"""How tests run coroutines."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, run in a new loop in a new thread.

    The thread of the tests already has a running loop once a test before has opened the browser.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
