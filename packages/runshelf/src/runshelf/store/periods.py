"""The periods in which a run was executing. A resumed run has several."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, final

from runshelf.received_json import finite
from runshelf.store.liveness import heartbeat_time
from runshelf.store.run import Run
from runshelf.store.state import OVER, StateName
from runshelf.store.times import seconds_of


@final
class Period(NamedTuple):
    """One period of execution.

    Attributes:
        begin: its start in Unix seconds.
        seconds: its duration.
        cost: its cost, if recorded at its end.
    """

    begin: float
    seconds: float
    cost: float | None


def periods_of(run: Run, state: StateName) -> list[Period]:
    """Return the periods of a run in a state; a lost run ended with its last heartbeat.

    Later changes of its folder, such as a compaction, are no signs of life.

    Raises:
        UserFacingError: its events cannot be read.
    """
    until = heartbeat_time(run.folder) / 1e9 if state == "lost" else time.time()
    return periods(run.events(), until)


def periods(events: Iterable[Mapping[str, Any]], until: float) -> list[Period]:
    """Return the periods of a run from its events; a period without an end ends at `until`."""
    found: list[Period] = []
    begin: float | None = None
    for event in events:
        status, at = event.get("status"), seconds_of(event.get("time"))
        if at is None:
            continue
        if status in ("started", "resumed"):
            if begin is not None and begin < until < at:  # it was killed
                found.append(Period(begin, until - begin, None))
            begin = at
        elif status in OVER and begin is not None:
            seconds = finite(event.get("seconds"))
            length = at - begin if seconds is None else seconds
            found.append(Period(begin, max(length, 0.0), finite(event.get("cost"))))
            begin = None
    if begin is not None:
        found.append(Period(begin, max(until - begin, 0.0), None))
    return found
