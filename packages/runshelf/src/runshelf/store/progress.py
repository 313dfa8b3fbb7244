"""Progress of a running run: fraction done, estimated end, and warnings.

Only a few files are read: the trainer's status, the end of the metrics, the heartbeat.
"""

import contextlib
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.durations import duration
from runshelf.errors import UserFacingError
from runshelf.received_json import finite, mapping_of, parse_record
from runshelf.store import opening
from runshelf.store.liveness import SILENCE_SECONDS
from runshelf.store.metrics import stamp
from runshelf.store.run import Run

_TAIL = 64 * 1024
_RECORDS = 64
_LATEST = 4
_MOST_WRITERS = 8
# NaN in metrics with such names means that learning failed; in others it may be normal.
_MUST_BE_FINITE = ("loss", "grad")
_QUIET_TIMES = 10.0
_QUIET_SECONDS = 60.0


@final
class Progress(NamedTuple):
    """The progress of a run.

    Attributes:
        share: fraction done, from 0 to 1; None if unknown.
        seconds_left: estimated remaining time; None without an estimate.
        source: what the estimate is based on.
        doing: the current activity as reported by the run.
        alarms: what the run has recorded, and warnings, a few words each.
    """

    share: float | None
    seconds_left: float | None
    source: str
    doing: str
    alarms: list[str]


@final
class Tail(NamedTuple):
    """The end of a run's metrics.

    Attributes:
        records: the last records of each writer, oldest first.
        latest: the newest of these records of each writer.
        age: seconds since the last record; None without records.
    """

    records: list[dict[str, Any]]
    latest: list[dict[str, Any]]
    age: float | None


def progress_of(
    folder: Path, manifest: Mapping[str, Any], elapsed: float, others: Sequence[float] = ()
) -> Progress:
    """Return the progress of the run in `folder`.

    Args:
        folder: the run's folder.
        manifest: its `run.json`.
        elapsed: seconds since the run started.
        others: durations of finished runs of its group in seconds.
    """
    elapsed = max(elapsed, 0.0)  # the clock may have been set back
    tail = read_tail(folder)
    estimates = (
        _by_env_steps(manifest, tail, elapsed),
        _by_budget(manifest, elapsed),
        _by_others(others, elapsed),
    )
    share, left, source = next((e for e in estimates if e), (None, None, ""))
    alarms = _alarms(folder, tail)
    with contextlib.suppress(UserFacingError):  # damaged events
        alarms = [*Run(folder, manifest).alarms(), *alarms]
    if any(alarm.startswith("no ") for alarm in alarms):
        left = None  # the run may hang
    return Progress(share, left, source, _doing(folder), alarms)


def read_tail(folder: Path) -> Tail:
    """Return the end of the metrics of the run in `folder`."""
    records: list[dict[str, Any]] = []
    latest: list[dict[str, Any]] = []
    ages: list[float] = []
    names = [name for name, _, size in stamp(folder) if name.endswith(".jsonl") and size]
    for name in names[:_MOST_WRITERS]:
        with contextlib.suppress(opening.NoFile), opening.opened(folder, name) as file:
            status = os.fstat(file)
            ages.append(max(0.0, time.time() - status.st_mtime))
            start = max(0, status.st_size - _TAIL)
            lines = os.pread(file, _TAIL, start).split(b"\n")[-_RECORDS - 1 :]
            found = [record for line in lines if (record := _record(line))]
            records += found
            latest += found[-_LATEST:]
    return Tail(records, latest, min(ages) if ages else None)


def time_of_last_line(folder: Path) -> float | None:
    """Return when the run in `folder` logged or printed its last line; None if it has not yet."""
    times = [nanoseconds / 1e9 for name, nanoseconds, _ in stamp(folder) if name.endswith(".jsonl")]
    with contextlib.suppress(opening.NoFile), opening.opened(folder, "output.log") as file:
        times.append(os.fstat(file).st_mtime)
    return max(times, default=None)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        return parse_record(line)
    except ValueError:
        return None


def _doing(folder: Path) -> str:
    try:
        doing = parse_record(opening.read(folder, "status.json", _TAIL))["doing"]
    except (opening.NoFile, ValueError, KeyError):
        return ""
    return doing if isinstance(doing, str) else ""


def _by_env_steps(
    manifest: Mapping[str, Any], tail: Tail, elapsed: float
) -> tuple[float, float | None, str] | None:
    config = mapping_of(manifest.get("config"))
    total = finite(mapping_of(config.get("settings")).get("env_steps")) or finite(
        config.get("env_steps")
    )
    # The slowest seed determines the progress; take the last record of each seed.
    latest = {record.get("seed"): finite(record.get("env_steps")) for record in tail.records}
    done = min((n for n in latest.values() if n is not None), default=None)
    if not total or not done:
        return None
    share = min(1.0, done / total)
    seconds = max((finite(record.get("seconds")) or 0.0 for record in tail.records), default=0.0)
    left = (1 - share) / share * (seconds or elapsed)
    return share, left, "env steps"


def _by_budget(manifest: Mapping[str, Any], elapsed: float) -> tuple[float, float, str] | None:
    budget = finite(manifest.get("budget_seconds"))
    if not budget:
        return None
    return min(1.0, elapsed / budget), max(0.0, budget - elapsed), "the time budget"


def _by_others(others: Sequence[float], elapsed: float) -> tuple[float, float, str] | None:
    usual = statistics.median(others) if others else 0.0
    if usual <= elapsed:
        return None
    return elapsed / usual, usual - elapsed, "finished runs of its group"


def _alarms(folder: Path, tail: Tail) -> list[str]:
    alarms: list[str] = []
    invalid = {
        name
        for record in tail.latest
        for name, value in record.items()
        if value in ("NaN", "Infinity", "-Infinity")
        and any(word in name.lower() for word in _MUST_BE_FINITE)
    }
    if invalid:
        more = f", and {len(invalid) - 1} more" if len(invalid) > 1 else ""
        alarms.append(f"{min(invalid)} is not finite{more}")
    usual = _usual_gap(tail)
    if tail.age is not None and tail.age > max(_QUIET_SECONDS, _QUIET_TIMES * usual):
        alarms.append(f"no record for {duration(tail.age)}")
    beat = _beat_age(folder)
    if beat is not None and beat > SILENCE_SECONDS:
        alarms.append(f"no heartbeat for {duration(beat)}")
    return alarms


def _usual_gap(tail: Tail) -> float:
    """Return the mean time between records; 0 if the records have no times."""
    for clock in ("seconds", "time"):
        times = [t for r in tail.records if (t := finite(r.get(clock))) is not None]
        if len(times) > 1:
            return (max(times) - min(times)) / (len(times) - 1)
    return 0.0


def _beat_age(folder: Path) -> float | None:
    with contextlib.suppress(opening.NoFile), opening.opened(folder, "heartbeat.json") as file:
        return abs(time.time() - os.fstat(file).st_mtime)
    return None
