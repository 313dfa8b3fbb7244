"""The index of a home: updated from the run folders, queried for pages of runs and groups.

If it turns out to be damaged, it is built again from the folders, and one line on stderr says so.
"""

import contextlib
import functools
import json
import math
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, final

from runshelf.errors import UsageError, UserFacingError
from runshelf.index import refresh as folders
from runshelf.index.database import (
    can_be_damage,
    clear,
    close_database,
    damage_in,
    identity_of,
    is_busy,
    move_aside,
    open_database,
    writing,
)
from runshelf.index.entry import clean
from runshelf.index.group_values import Wanted, estimate, one_value, sample_values
from runshelf.index.grouping import Samples, samples, seeds_of_samples
from runshelf.index.location import places
from runshelf.index.refresh import Problem, Report
from runshelf.index.rows import (
    COLUMNS,
    DamagedRow,
    GroupPage,
    GroupRow,
    Keys,
    Outline,
    RunPage,
    RunRow,
    from_columns,
    outline_of,
)
from runshelf.index.sql_conditions import (
    NEWEST_FIRST,
    Field,
    Fields,
    Sql,
    ordering,
    where,
)
from runshelf.store.finding import LATEST, find_run
from runshelf.store.home import INDEX, has_runs, make_shared, shared
from runshelf.store.results import Result
from runshelf.store.run_ids import LEAST, SHORT, is_ulid
from runshelf.terminal_text import put

P = ParamSpec("P")
T = TypeVar("T")

MOST_COLUMNS = 200
MOST_KEYS = 5_000  # settings, or metrics, that are offered; others can be typed
# SQLite limits the number of parameters of a statement to some thousands.
_CHUNK = 500


def _repaired(
    method: "Callable[Concatenate[Index, P], T]",
) -> "Callable[Concatenate[Index, P], T]":
    """Return a method that builds the index again if that is damaged, and then starts over."""

    @functools.wraps(method)
    def checked(self: "Index", *args: P.args, **options: P.kwargs) -> T:
        with self.used():
            try:
                return method(self, *args, **options)
            except UserFacingError:
                raise
            except Exception as error:
                if not self.repair(error):
                    if isinstance(error, sqlite3.Error):
                        raise _unusable(error) from error
                    raise
            try:
                return method(self, *args, **options)
            except sqlite3.Error as error:
                raise _unusable(error) from error

    return checked


@final
class Index:
    """A cache of the contents of a home's run folders. Threads may share it.

    Attributes:
        home: the folder whose `runs/` holds the runs.
        path: the file of the index; None if no place is writable and the index is in memory.
    """

    def __init__(self, home: Path) -> None:
        """Open the index of `home`, or create an empty one; `refresh` fills it."""
        self.home = home
        self._lock = threading.RLock()
        self._has_said = False
        self._open()

    @contextlib.contextmanager
    def used(self) -> Generator[None, None, None]:
        """Lock out other threads; follow if another process has replaced the file."""
        with self._lock:
            if self.path is not None and identity_of(self.path) != self._identity:
                self._connection.close()
                self._open()
            yield

    def repair(self, error: Exception) -> bool:
        """Build the index again if an error came from damage; return whether it did."""
        if not self._is_damage(error):
            return False
        self._replace(error)
        with contextlib.suppress(sqlite3.Error):
            folders.refresh(self._connection, self.home)
        return True

    def refresh(self, report: Report | None = None) -> list[Problem]:
        """Update the index from the folders; return the folders that were skipped.

        If the index cannot be written, it stays unchanged, and the last problem says so.

        Args:
            report: called with the progress after every few hundred folders.
        """
        with self.used():
            if self.path is None and self._places != self._choose():
                self._open()
            try:
                return folders.refresh(self._connection, self.home, report)
            except Exception as error:
                if self._is_damage(error):
                    self._replace(error)
                elif not isinstance(error, sqlite3.Error):
                    raise
                elif not self._can_move(error):
                    return [self._outdated(error)]
                else:
                    self._open_next()
            try:
                return folders.refresh(self._connection, self.home, report)
            except sqlite3.Error as error:
                return [self._outdated(error)]

    def rebuild(self, report: Report | None = None) -> list[Problem]:
        """Empty the index and fill it again from the folders; return the skipped folders.

        Raises:
            UserFacingError: the index cannot be written.
        """
        with self.used():
            try:
                with writing(self._connection):
                    clear(self._connection)
            except sqlite3.Error as error:
                if not can_be_damage(error):
                    raise _unusable(error) from error
                self._move_aside()
        return self.refresh(report)

    @_repaired
    def runs(
        self,
        filter: str = "",
        sort: str = NEWEST_FIRST,
        columns: Sequence[str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> RunPage:
        """Return a page of the runs that match a filter.

        Args:
            filter: a filter (see `filter_syntax`); empty for all runs.
            sort: keys with commas between, `-` before a key for largest first.
            columns: keys whose values to return with each run.
            limit: the largest number of rows.
            offset: the number of rows to skip.

        Raises:
            UsageError: the filter, the sort order or a column is invalid.
        """
        with self._transaction() as fields:
            shown = _columns(fields, columns)
            joins, order = ordering(fields, sort)
            condition = where(fields, filter)
            numbers = self._column(
                f"SELECT r.number FROM runs r{joins.text} WHERE {condition.text}"
                f" ORDER BY {order}, r.ulid DESC",
                (*joins.parameters, *condition.parameters),
            )
            page = numbers[max(offset, 0) :][: max(limit, 0)]
            return RunPage(self._run_rows(page, shown), len(numbers))

    @_repaired
    def groups(
        self,
        filter: str = "",
        sort: str = NEWEST_FIRST,
        columns: Sequence[str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> GroupPage:
        """Return a page of the groups of the runs that match a filter.

        The arguments and errors are those of `runs`. Groups can also be sorted by the key `runs`,
        the number of their runs.
        """
        with self._transaction() as fields:
            shown = _columns(fields, columns)
            joins, order = ordering(fields, sort, grouped=True)
            condition = where(fields, filter)
            members: dict[str, list[int]] = {}
            for name, number in self._connection.execute(
                f"SELECT r.grouping, r.number FROM runs r WHERE {condition.text}"
                " ORDER BY r.created DESC, r.ulid DESC",
                condition.parameters,
            ):
                members.setdefault(name, []).append(number)
            self._offer_means(members)
            names = self._column(
                f"SELECT r.grouping FROM runs r{joins.text} WHERE {condition.text}"
                f" GROUP BY r.grouping ORDER BY {order}, MAX(r.ulid) DESC",
                (*joins.parameters, *condition.parameters),
            )
            page = names[max(offset, 0) :][: max(limit, 0)]
            rows = [self._group_row(name, members[name], shown) for name in page]
            return GroupPage(rows, len(names))

    @_repaired
    def members(self, group: str) -> list[RunRow]:
        """Return the runs of one group, newest first. The name must match exactly."""
        with self._transaction():
            select = "SELECT number FROM runs WHERE grouping = ? ORDER BY created DESC, ulid DESC"
            return self._run_rows(self._column(select, (clean(group),)), {})

    @_repaired
    def outlines(self, column: Literal["ulid", "grouping"], value: str, most: int) -> list[Outline]:
        """Return the newest runs with a value in a column; takes little time for any runs."""
        select = (
            f"SELECT ulid, state, note, created, parent FROM runs WHERE {column} = ?"
            " ORDER BY created DESC, ulid DESC LIMIT ?"
        )
        with self._transaction():
            rows = self._connection.execute(select, (clean(value), most)).fetchall()
        return [outline_of(row, self.home / "runs") for row in rows]

    @_repaired
    def result_of(self, rows: Sequence[RunRow]) -> Result | None:
        """Return the result of runs of one group: a mean over independent samples."""
        with self._transaction():
            select = "SELECT number FROM runs WHERE ulid = ?"
            numbers = [number for row in rows for number in self._column(select, (row.ulid,))]
            return self._result_of(numbers, rows, samples(rows)) if numbers else None

    @_repaired
    def run(self, ulid: str) -> RunRow | None:
        """Return the run with an id; None if it is not in the index."""
        with self._transaction():
            numbers = self._column("SELECT number FROM runs WHERE ulid = ?", (clean(ulid),))
            return self._run_rows(numbers, {})[0] if numbers else None

    @_repaired
    def called(self, name: str) -> list[RunRow]:
        """Return the runs that a name may mean, newest first: as `find`, but opens no folder."""
        is_part = (
            f"substr(ulid, 1, length(?1)) = ?1 OR length(?1) >= {LEAST}"
            " AND (substr(ulid, -length(?1)) = ?1"
            f" OR substr(substr(ulid, -{SHORT}), 1, length(?1)) = ?1)"
        )
        is_id = (is_part, name.upper())
        is_name = ("name = ?1", name)
        tests = [is_id, is_name] if len(name) >= SHORT else [is_name, is_id]
        if is_ulid(name):
            tests = [("ulid = ?1", name)]
        elif name == LATEST:
            tests = [("?1 <> '' AND ulid = (SELECT MAX(ulid) FROM runs)", name)]
        with self._transaction():
            for test, value in tests if name else ():
                select = f"SELECT number FROM runs WHERE {test} ORDER BY ulid DESC"
                if numbers := self._column(select, (clean(value),)):
                    return self._run_rows(numbers, {})
        return []

    def find(self, name: str) -> RunRow:
        """Return the run that `store.finding.find_run` finds.

        Raises:
            UsageError: no run or several runs match; the message names the nearest ones.
        """
        found = find_run(self.home, name)
        row = self.run(found.ulid)
        if row is None:
            self.refresh()
            row = self.run(found.ulid)
        if row is None:
            raise UsageError(f"run `{found.short}` is not in `{self.home / 'runs'}`")
        return row

    @_repaired
    def version(self) -> int | None:
        """Return a number that changes when another `Index` of this home writes to the index.

        None for an index in memory, which no other can write.
        """
        if self.path is None:
            return None
        with self._transaction():
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    @_repaired
    def keys(self) -> Keys:
        """Return the keys and values that can be used in filters, sort orders and columns."""
        with self._transaction():
            return Keys(
                config=self._column(
                    "SELECT name FROM keys k WHERE EXISTS"
                    " (SELECT 1 FROM settings WHERE key = k.number) ORDER BY name LIMIT ?",
                    (MOST_KEYS,),
                ),
                metrics=self._column(
                    "SELECT name FROM metrics m WHERE EXISTS"
                    " (SELECT 1 FROM summaries WHERE metric = m.number) ORDER BY name LIMIT ?",
                    (MOST_KEYS,),
                ),
                tags=self._column(
                    "SELECT DISTINCT j.value FROM runs, json_each(tags) j ORDER BY j.value"
                ),
                groups=self._column("SELECT DISTINCT grouping FROM runs ORDER BY grouping"),
                envs=self._column("SELECT DISTINCT env FROM runs WHERE env > '' ORDER BY env"),
                states=self._column("SELECT DISTINCT state FROM runs ORDER BY state"),
            )

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            close_database(self._connection, self.path)

    def __enter__(self) -> "Index":
        """Return the index."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database."""
        self.close()

    def _choose(self) -> list[Path]:
        """Return where to keep the index: nowhere as long as there are no runs."""
        return places(self.home) if has_runs(self.home) else []

    def _open(self) -> None:
        self._places = self._choose()
        if shared(self.home, INDEX) in self._places:
            with contextlib.suppress(OSError):  # the next place is used
                make_shared(self.home)
        self._open_first_of(self._places)

    def _open_first_of(self, places: Sequence[Path]) -> None:
        opened = open_database(places)
        self._connection, self.path, self._identity = opened[:3]
        if opened.damage:
            self._say(opened.damage)

    def _say(self, damage: str) -> None:
        """Say once that the index was damaged."""
        if not self._has_said:
            text = " ".join(f"runshelf: {damage}: the index is built again".split())
            put(text, file=sys.stderr)
        self._has_said = True

    def _is_damage(self, error: Exception) -> bool:
        """Return whether an error came from a damaged file."""
        if self.path is None or not can_be_damage(error):
            return False
        return isinstance(error, DamagedRow) or bool(damage_in(self._connection))

    def _can_move(self, error: sqlite3.Error) -> bool:
        """Return whether another place may help: the disk is full or has become read-only."""
        return self.path is not None and not can_be_damage(error) and not is_busy(error)

    def _outdated(self, error: sqlite3.Error) -> Problem:
        return Problem(self.home, f"the index may be out of date ({error})")

    def _replace(self, error: Exception) -> None:
        self._say(f"`{self.path}` was damaged ({error})")
        self._move_aside()

    def _move_aside(self) -> None:
        """Open a new database in the place of this one, or in the next place."""
        self._connection.close()
        try:
            if self.path is not None:
                move_aside(self.path, self._identity)
            self._open()
        except OSError:  # the folder is read-only
            self._open_next()

    def _open_next(self) -> None:
        """Open a database in the place after this one."""
        self._connection.close()
        after = self._places.index(self.path) + 1 if self.path in self._places else 0
        self._open_first_of(self._places[after:])

    @contextlib.contextmanager
    def _transaction(self) -> Generator[Fields, None, None]:
        """Make all reads see one state of the database."""
        self._connection.execute("BEGIN")
        try:
            yield Fields(self._connection)
        finally:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def _column(self, select: str, parameters: Sequence[object] = ()) -> list[Any]:
        return [value for (value,) in self._connection.execute(select, tuple(parameters))]

    def _run_rows(self, numbers: Sequence[int], columns: dict[str, Field]) -> list[RunRow]:
        found: dict[int, RunRow] = {}
        results = self._results(numbers)
        table = Sql(f"SELECT number, {COLUMNS} FROM runs WHERE number")
        for number, *values in self._select_in(table, numbers):
            found[number] = from_columns(values, self.home / "runs", results.get(number))
        for name, field in columns.items():
            for number, value in self._values(field, numbers):
                found[number].values[name] = value
        return [found[number] for number in numbers]

    def _select_in(self, select: Sql, numbers: Sequence[int]) -> Iterator[Any]:
        """Yield the rows of `select IN (numbers)`."""
        for first in range(0, len(numbers), _CHUNK):
            chunk = numbers[first : first + _CHUNK]
            marks = ", ".join("?" * len(chunk))
            yield from self._connection.execute(
                f"{select.text} IN ({marks})", (*select.parameters, *chunk)
            )

    def _results(self, numbers: Sequence[int]) -> dict[int, Result]:
        """Return the result of each run that has metrics."""
        select = (
            "SELECT r.number, r.seeds, m.name, s.last, s.count FROM runs r"
            " JOIN metrics m ON m.number = r.result"
            " JOIN summaries s ON s.metric = r.result AND s.run = r.number WHERE r.number"
        )
        found: dict[int, Result] = {}
        for number, seeds, metric, last, count in self._select_in(Sql(select), numbers):
            value = (math.nan if last is None else last) if count else None
            found[number] = Result(metric, value, max(len(json.loads(seeds)), 1))
        return found

    def _values(self, field: Field, numbers: Sequence[int]) -> Iterator[tuple[int, object]]:
        """Yield the number and the value of each run that has a key."""
        match field.kind:
            case "setting":
                text = "SELECT run, number, text FROM settings WHERE key = ? AND run"
                for run, number, value in self._select_in(Sql(text, (field.number,)), numbers):
                    yield run, _original_value(number, value)
            case "metric":
                text = (
                    f"SELECT run, {field.column} FROM summaries"
                    " WHERE metric = ? AND count > 0 AND run"
                )
                for run, value in self._select_in(Sql(text, (field.number,)), numbers):
                    yield run, math.nan if value is None else value
            case kind:
                text = f"SELECT r.number, {field.column} FROM runs r WHERE r.number"
                for run, value in self._select_in(Sql(text), numbers):
                    if value is not None:
                        yield run, json.loads(value) if kind == "many" else value

    def _group_row(self, name: str, numbers: Sequence[int], columns: dict[str, Field]) -> GroupRow:
        rows = self._run_rows(numbers, {})
        states = [row.state for row in rows]
        found = samples(rows)
        estimates = {
            key: estimate(values)
            for key, field in columns.items()
            if field.kind == "metric"
            and (values := self._sample_values(field, numbers, rows, found))
        }
        others = {
            key: [value for _, value in self._values(field, numbers)]
            for key, field in columns.items()
            if field.kind not in ("metric", "result")
        }
        result = self._result_of(numbers, rows, found)
        means: dict[str, object] = {key: one.mean for key, one in estimates.items()}
        if result is not None and result.value is not None:
            means |= {key: result.value for key, of in columns.items() if of.kind == "result"}
        return GroupRow(
            group=name,
            runs=len(rows),
            seeds=seeds_of_samples(found.counted),
            n=len(found.counted),
            repeats=found.repeats,
            states={state: states.count(state) for state in sorted(set(states))},
            question=next((row.question for row in rows if row.question), None),
            created=rows[0].created,
            env=rows[0].env,
            algorithm=rows[0].algorithm,
            values=means | {key: one_value(columns[key], of) for key, of in others.items() if of},
            estimates=estimates,
            result=result,
        )

    def _sample_values(
        self, field: Field, numbers: Sequence[int], rows: Sequence[RunRow], found: Samples
    ) -> list[float]:
        """Return a metric's value in each independent sample of the runs with these numbers."""
        number_of = {row.ulid: number for row, number in zip(rows, numbers, strict=True)}
        seeds = {number_of[ulid]: of for ulid, of in found.seeds_by_run().items()}
        return sample_values(self._connection, Wanted(field.number, field.column), seeds)

    def _result_of(
        self, numbers: Sequence[int], rows: Sequence[RunRow], found: Samples
    ) -> Result | None:
        """Return the mean over the samples of the metric that is the result of most of them."""
        results = [sample.run.result for sample in found.counted if sample.run.result]
        measured = [one.metric for one in results if one.value is not None]
        names = measured or [one.metric for one in results]
        if not names:
            return None
        metric = max(dict.fromkeys(names), key=names.count)
        (number,) = self._column("SELECT number FROM metrics WHERE name = ?", (clean(metric),))
        values = self._sample_values(Field("metric", "last", number), numbers, rows, found)
        return Result(metric, estimate(values).mean if values else None, len(values))

    def _offer_means(self, members: Mapping[str, Sequence[int]]) -> None:
        """Define the SQL functions that sort groups by a metric."""

        @functools.cache
        def found(metric: int, column: str, group: str) -> list[float]:
            rows = self._run_rows(members[group], {})
            field = Field("metric", column, metric)
            return self._sample_values(field, members[group], rows, samples(rows))

        def mean(*of: Any) -> float | None:
            return estimate(found(*of)).mean if found(*of) else None

        def result(group: str) -> float | None:
            rows = self._run_rows(members[group], {})
            of_group = self._result_of(members[group], rows, samples(rows))
            return None if of_group is None else of_group.value

        self._connection.create_function("group_result", 1, result)
        self._connection.create_function("group_n", 3, lambda *of: len(found(*of)) or None)
        self._connection.create_function("group_mean", 3, mean)


def open_index(home: Path) -> Index:
    """Return the index of `home` in its last state; `refresh` updates it."""
    return Index(home)


def _columns(fields: Fields, keys: Sequence[str]) -> dict[str, Field]:
    if len(keys) > MOST_COLUMNS:
        raise UsageError(f"{len(keys)} columns: the limit is {MOST_COLUMNS}, remove some")
    return {key: fields.find(key) for key in keys}


def _original_value(number: int | float | None, text: str) -> object:
    """Return a setting's value as a number, a boolean, or text."""
    if number is None:
        return text
    return text == "true" if text in ("true", "false") else number


def _unusable(error: sqlite3.Error) -> UserFacingError:
    return UserFacingError(f"the index cannot be used ({error}): type runshelf reindex")
