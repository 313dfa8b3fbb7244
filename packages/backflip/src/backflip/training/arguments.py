"""The kinds of arguments of `train` and `teach`, which any program may call."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from backflip.preferences.answer_source import AnswerSource
from runshelf.errors import UsageError, shown
from runshelf.store.run import Run, RunInfo


def refuse_other_kinds(**arguments: object) -> None:
    """Refuse an argument of another kind than its name says.

    Raises:
        UsageError: it is such an argument.
    """
    for name, value in arguments.items():
        is_of_kind, expected = _KINDS[name]
        if not is_of_kind(value):
            raise UsageError(f"`{name}` must be {expected}, got {shown(value)}")


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


def _is_texts(value: object) -> bool:
    if not isinstance(value, Sequence):
        return False
    return all(isinstance(each, str) for each in cast("Sequence[object]", value))


_NONE = type(None)
_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("env", "algorithm"), (_is(str), "text")),
    "run": (_is(Run, Path, str), "a run, its folder or its id"),
    "teacher": (_is(str, AnswerSource, _NONE), "text, an `AnswerSource` or None"),
    "labels_from": (_is(str, Path, _NONE), "a run, a file or None"),
    "reward_from": (_is(str, _NONE), "a run or None"),
    "home": (_is(str, Path, _NONE), "a folder or None"),
    "argv": (lambda value: value is None or _is_texts(value), "a list of texts or None"),
    "info": (_is(RunInfo), "a `RunInfo`"),
    "report": (lambda value: value is None or callable(value), "a function or None"),
}
