"""Loads the logger on the first call.

A signal handler or a finaliser may log while the logger is being loaded. It can neither wait for
the import that it interrupts nor use a partly loaded module, so its calls are dropped and counted.
"""

from _thread import get_ident
from collections.abc import Callable
from typing import Any

LOGGING = ("clip", "image", "log", "rate", "timed")

_loading: list[int] = []  # the threads that are loading the logger
_dropped: list[str] = []  # the functions called during loading


def logging_function(name: str, namespace: dict[str, Any]) -> Any:
    """Return a function of the logger; a stand-in while this thread is loading the logger.

    Args:
        name: one of `LOGGING`.
        namespace: the calling module's namespace. The function is stored there, because a module's
            `__getattr__` is far slower than logging.
    """
    me = get_ident()
    if me in _loading:
        return _Dropped(name)
    _loading.append(me)
    try:
        from runshelf.logger import log as logger  # noqa: PLC0415

        function = getattr(logger, name)
    except Exception:  # noqa: BLE001  (the interpreter is shutting down; logging never raises)
        return _Dropped(name)
    finally:
        _loading.remove(me)
    _note_dropped(logger.note_dropped)
    return namespace.setdefault(name, function)


def _note_dropped(note: Callable[[str], None]) -> None:
    while True:
        try:
            name = _dropped.pop()
        except IndexError:  # not checked before: a signal handler may pop the last one in between
            return
        note(name)


class _Dropped:
    """Stands in for a logger function that is not loaded yet; counts its calls."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **settings: Any) -> "_Untimed | None":
        _dropped.append(self._name)
        return _Untimed() if self._name == "timed" else None


class _Untimed:
    """Stands in for `timed`; measures nothing."""

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
