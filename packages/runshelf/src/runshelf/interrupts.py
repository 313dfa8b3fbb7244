"""Ctrl-C and SIGTERM, interruptible whenever they come.

Python raises `KeyboardInterrupt` in the main thread, between two instructions. If these belong to
a callback from C it may be dropped there, as by JAX whenever garbage is collected; while an
extension is imported it ends the process. Here it is raised again a moment later, or put off.
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

AGAIN_SECONDS = 0.05
IMPATIENT_SECONDS = 2.0
MOST_PUT_OFF = 200  # times: an import that takes longer is stopped after all
_PYTHONS = signal.default_int_handler


class Terminated(KeyboardInterrupt):
    """SIGTERM. Whoever handles Ctrl-C handles it, too."""


_raised: list[type[KeyboardInterrupt]] = []  # what whoever catches it must let go on


def check_interrupt() -> None:
    """Raise anew what somebody caught and kept for himself, as a callback of a library may."""
    if _raised:
        raise _raised[-1]


@contextmanager
def interruptible(*numbers: signal.Signals) -> Generator[None, None, None]:
    """Raise `KeyboardInterrupt` for SIGINT and `Terminated` for SIGTERM, and never lose one.

    What somebody else handles stays his; so does everything outside of the main thread.
    """
    mine = [n for n in numbers if signal.getsignal(n) in (signal.SIG_DFL, _PYTHONS)]
    if not mine or threading.current_thread() is not threading.main_thread():
        yield
        return
    _raised.clear()
    ear, hook = _Ear(), sys.unraisablehook
    before = {number: signal.signal(number, ear.hear) for number in mine}
    sys.unraisablehook = ear.take_up
    try:
        yield
    finally:
        _raised.clear()
        ear.again.cancel()
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@final
class _Ear:
    """The handler of signals, and of what is raised where nobody can catch it."""

    def __init__(self) -> None:
        self.again = threading.Timer(0, lambda: None)
        self._put_off, self._hook = 0, sys.unraisablehook
        self._raised = -math.inf

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Raise, or put it off while something is imported.

        Who has just been asked to stop is putting things away, and is not asked again at once.
        """
        if _imports(frame) and self._put_off < MOST_PUT_OFF:
            self._put_off += 1
            self._ring_again(number)
            return
        self._put_off, before = 0, self._raised
        self._raised = time.monotonic()
        if self._raised - before < IMPATIENT_SECONDS:
            return
        _raised.append(Terminated if number == signal.SIGTERM else KeyboardInterrupt)
        raise _raised[-1]

    def take_up(self, dropped: Any) -> None:
        """Ring again for an interrupt that was dropped; leave all else to the hook of before."""
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            self._raised = -math.inf
            terminated = isinstance(dropped.exc_value, Terminated)
            self._ring_again(signal.SIGTERM if terminated else signal.SIGINT)
        else:
            self._hook(dropped)

    def _ring_again(self, number: int) -> None:
        main = threading.main_thread().ident  # a signal to this thread wakes it if it sleeps
        self.again = threading.Timer(AGAIN_SECONDS, signal.pthread_kill, [main, number])
        self.again.daemon = True
        self.again.start()


def _imports(frame: FrameType | None) -> bool:
    """Return whether an import is under way in a frame or in whatever called it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
