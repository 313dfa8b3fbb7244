"""Finds out which exception ends this program.

Python calls `sys.excepthook` for all exceptions but `SystemExit`. For that one the interpreter
reads the attribute `code` after the last frame of the program has returned, so `SystemExit.code`
is replaced by a descriptor that notes it. CPython has no other way to get the exit status before
`atexit` functions run.
"""

import functools
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

_ended: list[BaseException] = []  # at most one
_before: list[BaseException | None] = []  # the last printed exception when `watch` was called


def watch() -> None:
    """Start to record what ends the program; other hooks are still called."""
    _before[:] = [_last_printed()]
    _watch_exceptions()
    _watch_sys_exit()
    with suppress(Exception):  # not CPython: the exit status stays unknown
        _watch_system_exit()


def ended_by() -> BaseException | None:
    """Return the exception that ended the program; None if it ended normally or still runs."""
    if _ended:
        return _ended[0]
    printed = _last_printed()  # if another hook has replaced ours
    is_new = printed is not None and printed not in _before
    return printed if is_new and not _is_interactive() else None


def _watch_exceptions() -> None:
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not _is_interactive():
            _ended[:] = [error]
        before(kind, error, trace)

    sys.excepthook = hook


def _watch_sys_exit() -> None:
    """Make `sys.exit` raise an instance of `SystemExit`: before Python 3.12 it does not."""
    before = sys.exit

    @functools.wraps(before)
    def leave(status: Any = None, /) -> NoReturn:
        try:
            before(status)
        except SystemExit:
            raise

    sys.exit = leave


def _watch_system_exit() -> None:
    import ctypes  # noqa: PLC0415  (only programs that create a run need it)
    import gc  # noqa: PLC0415

    fields: Any = gc.get_referents(SystemExit.__dict__)[0]
    fields["code"] = _Code(fields["code"])
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(SystemExit))


class _Code:
    """Replaces `SystemExit.code` and notes when the interpreter reads it."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __get__(self, error: SystemExit | None, kind: Any = None) -> Any:
        if error is None:
            return self
        code = self._real.__get__(error, kind)
        if sys._getframe().f_back is None:  # pyright: ignore[reportPrivateUsage]
            _ended[:] = [SystemExit(code)]  # a new one, which keeps no frames of the program alive
        return code

    def __set__(self, error: SystemExit, code: Any) -> None:
        self._real.__set__(error, code)


def _last_printed() -> BaseException | None:
    error: object = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


def _is_interactive() -> bool:
    """Return whether this is an interactive session, which an exception does not end."""
    return hasattr(sys, "ps1")
