"""Teach an agent what you want by comparing short clips of its behaviour.

`backflip.train("ppo", "CartPole-v1", seeds=10)` learns from an environment's own reward,
`backflip.teach("dot", labels=100)` from preferences. `backflip.log("loss", x)` logs from any
program. Importing the package imports nothing heavy.
"""

from _thread import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from backflip.api import teach
    from backflip.archive.logger import clip, image, log, rate, timed
    from backflip.training.train import train

__all__ = ["clip", "image", "log", "rate", "teach", "timed", "train"]

_LOGGING = ("clip", "image", "log", "rate", "timed")


def __getattr__(name: str) -> Any:
    """Return what is asked for, importing JAX and whatever else it needs only now."""
    if name == "train":
        from backflip.training.train import train  # noqa: PLC0415

        return train
    if name == "teach":
        from backflip.api import teach  # noqa: PLC0415

        return teach
    if name in _LOGGING:
        return _logging(name)
    raise AttributeError(f"module `backflip` has no attribute `{name}`")


_loading: list[int] = []  # the threads that are loading the logger
_dropped: list[str] = []  # what was used meanwhile


def _logging(name: str) -> Any:
    """Return a function of the logger; one that does nothing while this thread is loading it.

    A signal's handler or a finaliser may come in between, which neither may wait for the import
    that it interrupts nor use the half that is there; at the very end nothing is imported any more.
    """
    me = get_ident()
    if me in _loading:
        return _Dropped(name)
    _loading.append(me)
    try:
        from backflip.archive import logger  # noqa: PLC0415

        function = getattr(logger, name)
    except Exception:  # noqa: BLE001  (the interpreter is about to end; logging breaks nothing)
        return _Dropped(name)
    finally:
        _loading.remove(me)
    _note_dropped(logger.note_dropped)
    # Kept: `__getattr__` is far slower than logging is.
    return globals().setdefault(name, function)


def _note_dropped(note: "Callable[[str], None]") -> None:
    while True:
        try:
            name = _dropped.pop()
        except IndexError:  # not asked before: a signal's handler may note the last one meanwhile
            return
        note(name)


class _Dropped:
    """What stands in for a function of the logger that is not there yet: it counts its calls."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **settings: Any) -> "_Untimed | None":
        _dropped.append(self._name)
        return _Untimed() if self._name == "timed" else None


class _Untimed:
    """What stands in for `timed` and measures nothing."""

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
