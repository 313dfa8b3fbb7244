"""Updates the index from the run folders: checks each folder, and reads those that changed.

An ended run is read again when its folder's time stamp changes, a running run each time, a lost run
when its heartbeat changes. Writes are short transactions, so that several processes can refresh one
index at once; they may read a folder twice, with the same result.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast, final

from runshelf.errors import UserFacingError
from runshelf.index.database import writing
from runshelf.index.entry import (
    MOST_SEEDS,
    SETTLED_SECONDS,
    Entry,
    check_files,
    clean,
    metrics_stamp,
    read_entry,
)
from runshelf.index.identity import content_of
from runshelf.index.rows import DamagedRow, list_of, to_columns
from runshelf.store import summary
from runshelf.store.home import is_beside_runs
from runshelf.store.liveness import heartbeat_time
from runshelf.store.results import named_metric, result_metric
from runshelf.store.run_ids import is_ulid
from runshelf.store.state import OVER
from runshelf.store.summary import Summary

# What was read is stored after so many runs, or seconds: a large run delays only those after it.
BATCH = 200
BATCH_SECONDS = 1.0
# Of one run. Others are on the run's page only.
MOST_METRICS = 10_000
# The largest share of time that reading the metrics of a running run may take.
SUMMARY_SHARE = 0.05
# A younger folder without a manifest may belong to a run that is starting.
STARTING_SECONDS = 3600.0


@final
class Problem(NamedTuple):
    """A folder that was skipped.

    Attributes:
        folder: the folder.
        message: the reason, on one line.
    """

    folder: Path
    message: str


@final
class Progress(NamedTuple):
    """The progress of reading.

    Attributes:
        done: number of folders read.
        total: number of folders to read.
        seconds: time since reading began.
        to_go: estimated seconds until the end.
    """

    done: int
    total: int
    seconds: float
    to_go: float


Report = Callable[[Progress], None]


@final
class Known(NamedTuple):
    """The columns of a run that show whether its folder has changed."""

    number: int
    stamp: int
    state: str
    beat: int
    metrics_stamp: str
    summarised: float
    summary_seconds: float
    content: str
    seeds: Sequence[int]


@final
class Reading(NamedTuple):
    """The content of one folder; `summaries` is None if they were not read again."""

    stamp: int
    entry: Entry
    metrics_stamp: str
    summarised: float
    summary_seconds: float
    summaries: Mapping[str, Summary] | None


def refresh(
    connection: sqlite3.Connection, home: Path, report: Report | None = None
) -> list[Problem]:
    """Update the tables from the run folders of `home`; return the skipped folders.

    Raises:
        sqlite3.Error: the tables cannot be written; committed batches stay.
    """
    found, problems = _found(home / "runs")
    known = _known(connection)
    _forget(connection, [known[ulid].number for ulid in known.keys() - found.keys()])
    changed = [ulid for ulid in found if _has_changed(home, ulid, found[ulid], known.get(ulid))]
    began = stored = time.monotonic()
    readings: list[Reading] = []
    for count, ulid in enumerate(changed):
        if count % BATCH == 0:
            _report(report, count, len(changed), time.monotonic() - began)
        reading = _read(home / "runs" / ulid, found[ulid], known.get(ulid))
        if isinstance(reading, Problem):
            problems.append(reading)
        elif reading:
            readings.append(reading)
        if len(readings) == BATCH or time.monotonic() > stored + BATCH_SECONDS:
            _store(connection, readings, named_metric(home))
            readings, stored = [], time.monotonic()
    _store(connection, readings, named_metric(home))
    _report(report, len(changed), len(changed), time.monotonic() - began)
    _rename_results(connection, home)
    bad = {problem.folder.name for problem in problems}
    _forget(connection, [known[ulid].number for ulid in bad & known.keys()])
    return problems


def _found(runs: Path) -> tuple[dict[str, int], list[Problem]]:
    """Return the possible run folders with their time stamps, oldest first, and other entries."""
    found: dict[str, int] = {}
    problems: list[Problem] = []
    try:
        entries = list(os.scandir(runs))
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [Problem(runs, f"`{runs}` cannot be read ({error.strerror})")]
    settled = time.time_ns() - int(SETTLED_SECONDS * 1e9)
    for entry in entries:
        if is_beside_runs(entry.name):
            continue
        problem = _foreign(entry)
        if problem:
            problems.append(Problem(runs / entry.name, _one_line(problem)))
            continue
        try:
            stamp = entry.stat(follow_symlinks=False).st_mtime_ns
        except OSError:  # removed since
            continue
        found[entry.name] = stamp if stamp < settled else 0
    return dict(sorted(found.items())), problems


def _foreign(entry: os.DirEntry[str]) -> str:
    """Return why an entry of `runs/` is not a run, or an empty string."""
    if not is_ulid(entry.name):
        return f"`{entry.path}` is not named by a run's id: skipped"
    if entry.is_symlink():
        return f"`{entry.path}` is a link: links are not followed, move the folder here"
    if not entry.is_dir(follow_symlinks=False):
        return f"`{entry.path}` is not a folder: skipped"
    return ""


def _known(connection: sqlite3.Connection) -> dict[str, Known]:
    rows = connection.execute(
        "SELECT ulid, number, stamp, state, beat, metrics_stamp, summarised, summary_seconds,"
        " content, seeds FROM runs"
    )
    return {ulid: _checked(ulid, Known(*rest)) for ulid, *rest in rows}


def _checked(ulid: str, known: Known) -> Known:
    """Check the types of a row; return it with its seeds as a list.

    Raises:
        DamagedRow: a value is not one that was written.
    """
    kinds = (int, int, str, int, str, float, float, str, str)
    if not is_ulid(ulid) or not all(map(isinstance, known, kinds)):
        raise DamagedRow(f"the row of run `{ulid}` has a wrong value")
    return known._replace(seeds=list_of(int, cast("str", known.seeds)))


def _has_changed(home: Path, ulid: str, stamp: int, known: Known | None) -> bool:
    if known is None or stamp == 0 or stamp != known.stamp or known.state == "running":
        return True
    return known.state not in OVER and heartbeat_time(home / "runs" / ulid) != known.beat


def _report(report: Report | None, done: int, total: int, seconds: float) -> None:
    if report and total:
        report(Progress(done, total, seconds, seconds / done * (total - done) if done else 0.0))


def _read(folder: Path, stamp: int, known: Known | None) -> Reading | Problem | None:
    """Read a folder; return None if it was removed or its run has not yet begun."""
    try:
        return _reading(folder, stamp, known)
    except FileNotFoundError:
        return None  # removed since
    except UserFacingError as error:
        if _is_starting(folder):
            return None
        return Problem(folder, _one_line(str(error)))
    except OSError as error:
        return Problem(folder, f"`{folder}` cannot be read ({error.strerror})")
    except Exception as error:  # noqa: BLE001  (hostile content must not stop the others)
        return Problem(folder, f"`{folder}` is damaged ({type(error).__name__}): skipped")


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _is_starting(folder: Path) -> bool:
    try:
        age = time.time() - folder.lstat().st_mtime
        return abs(age) < STARTING_SECONDS and not os.path.lexists(folder / "run.json")
    except OSError:
        return False


def _reading(folder: Path, stamp: int, known: Known | None) -> Reading:
    entry = read_entry(folder)
    metrics = metrics_stamp(folder)
    now = time.time()
    if known and (metrics == known.metrics_stamp or _is_too_soon(entry, known, now)):
        kept = (known.metrics_stamp, known.summarised, known.summary_seconds)
        return Reading(stamp, _with_logged(entry, known.content, known.seeds), *kept, None)
    check_files(folder)
    began = time.perf_counter()
    summaries = summarise(folder)
    entry = _with_logged(entry, content_of(summaries), _logged_seeds(summaries))
    return Reading(stamp, entry, metrics, now, time.perf_counter() - began, summaries)


def summarise(folder: Path) -> Mapping[str, Summary]:
    """Return the summaries of the metrics of a run, of the first `MOST_METRICS` by name."""
    return summary.summarise(folder, MOST_METRICS)


def _with_logged(entry: Entry, content: str, seeds: Sequence[int]) -> Entry:
    """Add what the metrics say: their digest, and the seeds of a run that recorded none."""
    row = replace(entry.row, content=content, seeds=entry.row.seeds or list(seeds))
    return entry._replace(row=row)


def _logged_seeds(summaries: Mapping[str, Summary]) -> list[int]:
    return _first_seeds({seed for one in summaries.values() for seed in one.seeds})


def _first_seeds(seeds: Iterable[int]) -> list[int]:
    """Return the first seeds, of those that SQLite can store, in order."""
    return sorted(seed for seed in seeds if abs(seed) < 2**63)[:MOST_SEEDS]


def _is_too_soon(entry: Entry, known: Known, now: float) -> bool:
    """Return whether to wait before reading a running run's metrics again, to limit the load."""
    wait = known.summary_seconds / SUMMARY_SHARE
    return entry.row.state not in OVER and 0 <= now - known.summarised < wait


def _forget(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    if not numbers:
        return
    with writing(connection):
        for number in numbers:
            for table in ("settings", "summaries", "seed_summaries"):
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
            connection.execute("DELETE FROM runs WHERE number = ?", (number,))


def _store(connection: sqlite3.Connection, readings: Sequence[Reading], named: str | None) -> None:
    with writing(connection):
        for reading in readings:
            number = _store_run(connection, reading)
            _store_settings(connection, number, reading)
            if reading.summaries is not None:
                _store_summaries(connection, number, reading.summaries, named)


def _store_run(connection: sqlite3.Connection, reading: Reading) -> int:
    """Insert or update a run's row; return its number."""
    row = {
        **to_columns(reading.entry.row),
        "words": reading.entry.words,
        "beat": reading.entry.beat,
        "stamp": reading.stamp,
        "metrics_stamp": reading.metrics_stamp,
        "summarised": reading.summarised,
        "summary_seconds": reading.summary_seconds,
    }
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    updates = ", ".join(f"{name} = excluded.{name}" for name in row if name != "ulid")
    return connection.execute(
        f"INSERT INTO runs({names}) VALUES ({marks})"
        f" ON CONFLICT(ulid) DO UPDATE SET {updates} RETURNING number",
        tuple(row.values()),
    ).fetchone()[0]


def _store_settings(connection: sqlite3.Connection, number: int, reading: Reading) -> None:
    settings = reading.entry.settings
    keys = _numbers(connection, "keys", [setting.key for setting in settings])
    connection.execute("DELETE FROM settings WHERE run = ?", (number,))
    connection.executemany(
        "INSERT OR REPLACE INTO settings VALUES (?, ?, ?, ?)",
        [(keys[key], number, value, text) for key, value, text in settings],
    )


def _store_summaries(
    connection: sqlite3.Connection,
    number: int,
    summaries: Mapping[str, Summary],
    named: str | None,
) -> None:
    kept = {clean(name): one for name, one in summaries.items()}
    metrics = _numbers(connection, "metrics", list(kept))
    for table in ("summaries", "seed_summaries"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
    connection.executemany(
        "INSERT INTO summaries VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(metrics[name], number, *_statistics(one)) for name, one in kept.items()],
    )
    connection.executemany(
        "INSERT INTO seed_summaries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (metrics[name], number, seed, *_statistics(whole.seeds[seed]))
            for name, whole in kept.items()
            if len(whole.seeds) > 1
            for seed in _first_seeds(whole.seeds)
        ],
    )
    result = result_metric({name: one.count for name, one in kept.items()}, named)
    chosen = None if result is None else metrics[result]
    connection.execute("UPDATE runs SET result = ? WHERE number = ?", (chosen, number))


def _rename_results(connection: sqlite3.Connection, home: Path) -> None:
    """Choose the results of all runs again if the user has named another metric for the home."""
    named = named_metric(home)
    wanted = [] if named is None else [(named,)]
    if connection.execute("SELECT metric FROM named").fetchall() == wanted:
        return
    runs: dict[int, dict[str, tuple[int, int]]] = {}
    for run, number, name, count in connection.execute(
        "SELECT s.run, m.number, m.name, s.count FROM summaries s JOIN metrics m"
        " ON m.number = s.metric"
    ):
        runs.setdefault(run, {})[name] = (number, count)
    with writing(connection):
        connection.execute("DELETE FROM named")
        connection.executemany("INSERT INTO named VALUES (?)", wanted)
        for run, metrics in runs.items():
            result = result_metric({name: count for name, (_, count) in metrics.items()}, named)
            number = None if result is None else metrics[result][0]
            connection.execute("UPDATE runs SET result = ? WHERE number = ?", (number, run))


def _statistics(one: Summary) -> list[float | int]:
    return [*map(float, (one.last, one.minimum, one.maximum, one.mean)), int(one.count)]


def _numbers(connection: sqlite3.Connection, table: str, names: Sequence[str]) -> dict[str, int]:
    """Return the numbers of names in a table; insert missing names."""
    insert = f"INSERT OR IGNORE INTO {table}(name) VALUES (?)"
    connection.executemany(insert, [(name,) for name in names])
    select = f"SELECT number FROM {table} WHERE name = ?"
    return {name: connection.execute(select, (name,)).fetchone()[0] for name in names}
