"""The type checker of the tests: beartype, which checks each nested function only once.

A nested function is made at every call of the function around it. Building its check took half a
millisecond each time, and half of the time of the tests that fit a reward.
"""

from collections.abc import Callable
from typing import Any

from beartype import beartype

_checks: dict[tuple[Any, ...], Callable[..., Any]] = {}


def checked(function: Any, **options: Any) -> Any:
    """Return `beartype(function)`; that of an equal function, if there was one.

    jaxtyping passes functions without a body: name and annotations say everything about them.
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
