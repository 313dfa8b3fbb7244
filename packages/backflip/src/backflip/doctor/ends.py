"""Tells when a training run that is followed has ended, as far as its log shows.

Many programs stop a little before the planned env steps: they round them down to whole updates, or
log every hundred env steps. Others are killed. Then only the time without new values tells.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from backflip.doctor.log import Log
from backflip.doctor.reading.from_settings import HOW
from runshelf.formatting import roughly
from runshelf.store.run import open_run
from runshelf.store.state import state_of

QUIET = 600.0  # seconds without new values after which a log has ended, at least
NEAR_QUIET = 60.0  # the same, if the next value is due at the planned env steps or beyond
USUAL = 20.0  # times the usual time between two values, at least
NEWEST = 20  # intervals of a signal that say what is usual


@final
@dataclass
class _Seen:
    """What was seen of a log: its size, since when, and how often it has changed until then."""

    size: tuple[float, int]
    began: float
    changed: float
    changes: int = 0


@final
class Ends:
    """Remembers when logs last changed."""

    def __init__(self) -> None:
        self._seen = dict[str, _Seen]()

    def why_over(self, log: Log) -> str | None:
        """Return why a training run has ended; None if it goes on, empty if that is plain.

        Call it after each look at the log.
        """
        if log.run is not None:
            return "" if state_of(open_run(Path(log.run))).name != "running" else None
        if log.planned > 0 and log.end >= log.planned:
            return ""
        seen, now = self._look(log), time.monotonic()
        is_near = _ends_near_plan(log)
        quiet = max(NEAR_QUIET if is_near else QUIET, USUAL * _usual_seconds(log, seen))
        if now - seen.changed < quiet:
            return None
        where = ", close to its planned env steps" if is_near else ""
        return f"no new value for {roughly(now - seen.changed)}{where}: judged as ended"

    def _look(self, log: Log) -> _Seen:
        size, now = (log.end, sum(len(one.x) for one in log.signals.values())), time.monotonic()
        seen = self._seen.setdefault(log.name, _Seen(size, now, now))
        if seen.size != size:
            seen.size, seen.changed, seen.changes = size, now, seen.changes + 1
        return seen


def _ends_near_plan(log: Log) -> bool:
    """Return whether the next value of a logged signal is due at the planned env steps or beyond.

    Signals that were computed from settings have few points, far apart.
    """
    logged = (one.x for one in log.signals.values() if one.how != HOW)
    x = max(logged, key=len, default=np.zeros(0))  # evaluations, for example, are far apart
    return len(x) > 1 and bool(x[-1] + np.median(np.diff(x)[-NEWEST:]) >= log.planned)


def _usual_seconds(log: Log, seen: _Seen) -> float:
    """Return the usual time between two values, as logged or as seen; 0 if neither tells."""
    if log.has("seconds"):
        gaps = np.diff(log.signals["seconds"].y)[-NEWEST:]
        return float(np.median(gaps)) if len(gaps) else 0.0
    return (seen.changed - seen.began) / seen.changes if seen.changes else 0.0
