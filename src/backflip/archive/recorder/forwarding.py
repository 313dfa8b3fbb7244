"""Signals that are meant for the program, and come to whoever records it."""

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class forwarding:  # noqa: N801  (a context manager, used as a function)
    """Signals to this process are the program's, meanwhile."""

    def __init__(self, forward: Callable[[int, FrameType | None], None]) -> None:
        self._forward = forward
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        for number in _FORWARDED:
            with suppress(ValueError):  # not the main thread: signals are somebody else's
                self._before[number] = signal.signal(number, self._forward)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
