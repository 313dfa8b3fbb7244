"""Sittings: from when to when a run ran. A run that was resumed has several."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, final

from runshelf.store.state import OVER


@final
class Sitting(NamedTuple):
    """One stretch of a run.

    Attributes:
        begin: when it began, in Unix seconds.
        seconds: how long it took.
        cost: what it cost, if its end says so.
    """

    begin: float
    seconds: float
    cost: float | None


def sittings(events: Iterable[Mapping[str, Any]], until: float) -> list[Sitting]:
    """Return the sittings of a run by its events; one without an end lasts `until` then."""
    found: list[Sitting] = []
    begin: float | None = None
    for event in events:
        status, at = event.get("status"), seconds_of(event.get("time"))
        if at is None:
            continue
        if status in ("started", "resumed"):
            if begin is not None and begin < until < at:  # it was killed
                found.append(Sitting(begin, until - begin, None))
            begin = at
        elif status in OVER and begin is not None:
            seconds = finite(event.get("seconds"))
            length = at - begin if seconds is None else seconds
            found.append(Sitting(begin, max(length, 0.0), finite(event.get("cost"))))
            begin = None
    if begin is not None:
        found.append(Sitting(begin, max(until - begin, 0.0), None))
    return found


def seconds_of(moment: object) -> float | None:
    """Return the Unix time of an ISO text; None if it is not one."""
    if not isinstance(moment, str):
        return None
    try:
        when = datetime.fromisoformat(moment)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def finite(value: object) -> float | None:
    """Return a number that JSON gave, or None if it is not a number or too large."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e300 else None
