"""Gives logged series our names, and says how each was computed."""

import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from backflip.doctor.log import Signal, Values
from backflip.doctor.signals import SIGNALS
from runshelf.errors import UsageError, did_you_mean
from runshelf.interop.metric_names import MEANINGS, Library, library_of

AXES = ("step", "env_steps", "time", "seconds", "updates", "seed", "episodes")
RAY = "ray/tune/"  # before RLlib's names in event files
_MOST_UNKNOWN = 40


@final
class Logged(NamedTuple):
    """A series as it was logged: env steps and values, both in the order of the log."""

    x: Values
    y: Values


@final
class Named(NamedTuple):
    """Logged series in our names.

    Attributes:
        library: the library that wrote them, or `unknown`.
        signals: by our name.
        unknown: names without a meaning for a check.
        notes: what is wrong with the series.
    """

    library: str
    signals: dict[str, Signal]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


def named(logged: Mapping[str, Logged], mapping: Mapping[str, str]) -> Named:
    """Return logged series in our names.

    Args:
        logged: by logged name.
        mapping: our name by logged name, as the user gave it. It comes first.

    Raises:
        UsageError: the mapping names a series that does not exist, or no signal of ours.
    """
    check_mapping(logged, mapping)
    short = {name.removeprefix(RAY): one for name, one in logged.items()}
    mapping = {name.removeprefix(RAY): ours for name, ours in mapping.items()}
    library = library_of(short)
    if not library and {"r", "l", "t"} <= short.keys():
        library = "monitor"
    notes, unknown, found = list[str](), list[str](), dict[str, Signal]()
    for name, series in short.items():
        ours, factor, how = _meaning(name, library, mapping)
        if not ours:
            unknown += [name] if name not in AXES else []
            continue
        if ours not in found or name in mapping:
            found[ours] = _signal(name, series, factor, how, notes)
    return Named(library or "unknown", found, tuple(unknown[:_MOST_UNKNOWN]), tuple(notes))


def check_mapping(logged: Mapping[str, Logged], mapping: Mapping[str, str]) -> None:
    """Check that a mapping leads from a logged name to one of ours.

    Raises:
        UsageError: it does not.
    """
    for theirs, ours in mapping.items():
        if theirs not in logged:
            raise UsageError(f"nothing is logged as `{theirs}`{did_you_mean(theirs, logged)}")
        if ours not in SIGNALS:
            raise UsageError(
                f"there is no signal `{ours}`{did_you_mean(ours, SIGNALS)}; "
                "backflip doctor --list has all"
            )


def closest(unknown: Sequence[str]) -> dict[str, str]:
    """Return the signal that each unknown name resembles, by unknown name."""
    found: dict[str, str] = {}
    for name in unknown:
        last = name.rsplit("/", 1)[-1].lower().replace("-", "_")
        match = difflib.get_close_matches(last, SIGNALS, 1, 0.75)
        if match:
            found[name] = match[0]
    return found


def _meaning(name: str, library: Library, mapping: Mapping[str, str]) -> tuple[str, float, str]:
    """Return our name, the factor, and how the value is computed; no name if it has none."""
    if name in mapping:
        return mapping[name], 1.0, ""
    meaning = MEANINGS.get(library, {}).get(name)
    if meaning and (meaning.like or meaning.ours):
        return meaning.like or meaning.ours, meaning.factor, meaning.caution
    if not library and name in SIGNALS:
        return name, 1.0, ""
    return "", 1.0, ""


def _signal(name: str, series: Logged, factor: float, how: str, notes: list[str]) -> Signal:
    """Return a series ordered by env steps; of equal steps, the last value counts."""
    x, y = series.x, series.y * factor
    known = np.isfinite(x)
    x, y = x[known], y[known]
    back = int((np.diff(x) < 0).sum())
    if back:
        notes.append(f"`{name}`: steps go back {back} times; values are in the order of steps")
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    last = np.append(np.diff(x) > 0, True)[: len(x)]
    return Signal(x[last], y[last], name, how)
