"""The type checks of the tests: beartype with jaxtyping, at the first calls of each function.

The fit of one reward calls a few small functions a hundred thousand times, with the same types at
each call. Checking all calls took more than half of the time of the tests that teach.
"""

import functools
from collections import Counter
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import jaxtyping
import pytest
from beartype import beartype

CHECKED_CALLS = 50  # of each function in each test; a property is tried with as many examples

_calls: Counter[CodeType] = Counter()
_checks: dict[tuple[Any, ...], Callable[..., Any]] = {}
_jaxtyped = jaxtyping.jaxtyped


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Check the first calls of every function again in each test."""
    _calls.clear()


def checked(function: Any, **options: Any) -> Any:
    """Return `beartype(function)`; that of an equal function, if there was one.

    jaxtyping passes functions without a body: name and annotations say everything about them. A
    nested function is made at every call of the function around it, and building its check takes
    half a millisecond.
    """
    annotations = getattr(function, "__annotations__", {})
    if isinstance(function, type) or "<locals>" not in function.__qualname__:
        return beartype(function, **options)
    key = (function.__module__, function.__qualname__, *annotations.items())
    try:
        return _checks[key]
    except TypeError:  # an annotation without a hash
        return beartype(function, **options)
    except KeyError:
        _checks[key] = beartype(function, **options)
        return _checks[key]


def _checked_at_first(function: FunctionType, typechecker: Any) -> Callable[..., Any]:
    """Return the function with a check at its first calls in each test."""
    code = function.__code__
    if _calls[code] >= CHECKED_CALLS:
        return function
    every_time = _jaxtyped(function, typechecker=typechecker)

    @functools.wraps(function)
    def at_first(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        _calls[code] += 1
        called = every_time if _calls[code] <= CHECKED_CALLS else function
        return called(*args, **options)

    return at_first


def _jaxtyped_at_first(*, typechecker: Any) -> Callable[[Any], Any]:
    """Return the decorator that jaxtyping's import hook puts on each function and class."""

    def decorate(what: Any) -> Any:
        if isinstance(what, FunctionType):
            return _checked_at_first(what, typechecker)
        return _jaxtyped(what, typechecker=typechecker)

    return decorate


jaxtyping.jaxtyped = _jaxtyped_at_first
