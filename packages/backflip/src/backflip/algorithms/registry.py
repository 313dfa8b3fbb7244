"""The registry of algorithms. Each module of `backflip.algorithms.entries` holds one entry."""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from backflip.algorithms import entries
from backflip.algorithms.entry import AlgorithmEntry
from runshelf.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from backflip.core.spec import EnvSpec


def names() -> list[str]:
    """Return the names of all algorithms in alphabetical order; imports no entry."""
    return sorted(module.name for module in pkgutil.iter_modules(entries.__path__))


@cache
def algorithms() -> dict[str, AlgorithmEntry]:
    """Return all entries by name in alphabetical order."""
    return {name: importlib.import_module(f"{entries.__name__}.{name}").ENTRY for name in names()}


def entry_of(algorithm: str) -> AlgorithmEntry:
    """Return the entry of an algorithm.

    Raises:
        UsageError: there is no such algorithm; the message names all of them.
    """
    known = algorithms()
    if algorithm not in known:
        raise UsageError(
            f"unknown algorithm `{algorithm}`{did_you_mean(algorithm, known)} "
            f"(there are: {', '.join(known)})"
        )
    return known[algorithm]


def check_spaces(entry: AlgorithmEntry, spec: "EnvSpec") -> None:
    """Refuse an environment whose spaces an algorithm does not support.

    Raises:
        UsageError: the spaces are unsupported; the message names the algorithms that support them.
    """
    if entry.supports(spec):
        return
    able = ", ".join(name for name, other in algorithms().items() if other.supports(spec))
    if entry.supports_actions(spec):
        shape = "x".join(map(str, spec.observation.shape))
        raise UsageError(
            f"`{entry.name}` does not learn such actions from images, and observations of "
            f"`{spec.id}` are images of {shape}; use one of: {able}"
        )
    chosen, found = ("discrete", "continuous") if entry.discrete else ("continuous", "discrete")
    raise UsageError(
        f"`{entry.name}` chooses {chosen} actions, and those of `{spec.id}` are {found}; "
        f"use one of: {able}"
    )
