"""Names of metrics, their step counters, and the axes of a row."""

import itertools
import json
from typing import Any, final

from runshelf.errors import did_you_mean, shown
from runshelf.logger.problems import Refused, problems
from runshelf.logger.values import scalar
from runshelf.received_json import is_finite

# Not imported from `store.series`, which needs numpy.
AXES = frozenset(("step", "env_steps", "updates", "episodes", "frames", "seconds", "time", "seed"))
LONGEST_KEY = 500
MOST_NAMES = 100_000
_MOST_ROWS = 4096  # combinations of names that are remembered as valid


@final
class Name:
    """A name that was logged before: its JSON text and its step counter."""

    __slots__ = ("steps", "text")

    def __init__(self, key: str) -> None:
        self.text = f"{json.dumps(key)}: "
        self.steps = itertools.count()


names: dict[str, Name] = {}
rows: dict[tuple[str, ...], Name] = {}


def check_row(keys: tuple[Any, ...]) -> Name | None:
    """Return the name whose step counter a row uses; report its invalid names."""
    valid = [key for key in keys if _is_name(key)]
    counted = next((names[key] for key in valid if key not in AXES), None)
    if counted is None and len(valid) == len(keys):
        raise Refused(f"`{', '.join(keys)[:60]}` holds only axes, no metric", "axis")
    if len(valid) == len(keys) and counted and len(rows) < _MOST_ROWS:
        rows[keys] = counted
    return counted


def _is_name(key: Any) -> bool:
    """Return whether `key` is a valid name, and remember it; report it if it is not."""
    if type(key) is str and (key in AXES or key in names):
        return True
    try:
        if not isinstance(key, str):
            raise Refused(f"`{shown(key)[:60]}` is not a name: give text", "name")
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise Refused(
                f"the name `{key[:40]!r}` has {len(key)} characters: use 1 to {LONGEST_KEY} "
                "printable ones",
                "name",
            )
        if len(names) >= MOST_NAMES:
            raise Refused(f"more than {MOST_NAMES} names, from `{key[:60]}` on", "names")
    except Refused as error:
        problems.report(error)
        return False
    names[str(key)] = Name(str(key))
    return True


def position(name: str, at: Any) -> str:
    """Return a position on an axis as JSON."""
    if name not in AXES:
        axes = ", ".join(sorted(AXES))
        raise Refused(f"unknown axis `{name}`{did_you_mean(name, AXES)}: use {axes}", "axis")
    number = scalar(at)
    if number is None or isinstance(number, bool) or not is_finite(number):
        raise Refused(f"`{name}={shown(at)[:60]}`: an axis needs a finite number", "axis")
    return repr(number)
