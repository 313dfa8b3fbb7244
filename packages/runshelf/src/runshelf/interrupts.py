"""Raises Ctrl-C, SIGTERM and SIGHUP as exceptions in the main thread, and never loses one.

Python raises `KeyboardInterrupt` between two instructions of the main thread. If these belong to a
callback from C, such as JAX's on garbage collection, the exception may be dropped. If they belong
to the import of an extension module, the process ends. Here a dropped exception is raised again a
moment later, and an interrupt during an import is delayed until the import is over.
"""

import math
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, final

RETRY_SECONDS = 0.05
CLEANUP_SECONDS = 2.0  # signals this soon after a raised one are ignored: the program is stopping
MAX_DELAYS = 200  # an import that outlasts this many retries is interrupted
_PYTHON_HANDLERS = (signal.SIG_DFL, signal.default_int_handler)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP. Code that handles Ctrl-C handles it, too."""


_raised: list[type[KeyboardInterrupt]] = []  # the interrupts raised in this `interruptible` block


def check_interrupt() -> None:
    """Raise the last interrupt again; call this after code that may have caught and dropped it."""
    if _raised:
        raise _raised[-1]


@contextmanager
def interruptible(*numbers: signal.Signals) -> Generator[None, None, None]:
    """Raise `KeyboardInterrupt` for SIGINT and `Terminated` for other signals in the block.

    A signal that already has a handler of the program keeps it. Outside of the main thread nothing
    changes.
    """
    ours = [n for n in numbers if signal.getsignal(n) in _PYTHON_HANDLERS]
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    _raised.clear()
    handler, hook = _Handler(), sys.unraisablehook
    before = {number: signal.signal(number, handler.handle) for number in ours}
    sys.unraisablehook = handler.on_unraisable
    try:
        yield
    finally:
        _raised.clear()
        handler.retry.cancel()
        sys.unraisablehook = hook
        for number, previous in before.items():
            signal.signal(number, previous)


@final
class _Handler:
    """Handles signals, and interrupts that were raised where no code can catch them."""

    def __init__(self) -> None:
        self.retry = threading.Timer(0, lambda: None)
        self._delays, self._hook = 0, sys.unraisablehook
        self._raised_at = -math.inf

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise the interrupt; delay it during an import, ignore it while the program cleans up."""
        if _is_importing(frame) and self._delays < MAX_DELAYS:
            self._delays += 1
            self._send_again(number)
            return
        self._delays, before = 0, self._raised_at
        self._raised_at = time.monotonic()
        if self._raised_at - before < CLEANUP_SECONDS:
            return
        _raised.append(KeyboardInterrupt if number == signal.SIGINT else Terminated)
        raise _raised[-1]

    def on_unraisable(self, dropped: Any) -> None:
        """Send a dropped interrupt again; pass all other errors to the previous hook."""
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            self._raised_at = -math.inf
            terminated = isinstance(dropped.exc_value, Terminated)
            self._send_again(signal.SIGTERM if terminated else signal.SIGINT)
        else:
            self._hook(dropped)

    def _send_again(self, number: int) -> None:
        main = threading.main_thread().ident  # a signal to this thread wakes it if it sleeps
        self.retry = threading.Timer(RETRY_SECONDS, signal.pthread_kill, [main, number])
        self.retry.daemon = True
        self.retry.start()


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether an import runs in a frame or in one of its callers."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
