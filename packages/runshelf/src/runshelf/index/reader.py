"""Reads pages of runs and groups from an open index, all in one state of the database."""

import functools
import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, final

from runshelf.errors import UsageError
from runshelf.index.entry import clean
from runshelf.index.group_values import Wanted, estimate, one_value, sample_values
from runshelf.index.grouping import Samples, samples, seeds_of_samples
from runshelf.index.rows import (
    COLUMNS,
    GroupPage,
    GroupRow,
    Keys,
    Outline,
    RunPage,
    RunRow,
    from_columns,
    outline_of,
)
from runshelf.index.sql_conditions import Field, Fields, Sql, ordering, where
from runshelf.store.finding import LATEST
from runshelf.store.results import Result
from runshelf.store.run_ids import LEAST, SHORT, is_ulid

MOST_COLUMNS = 200
MOST_KEYS = 5_000  # settings, or metrics, that are offered; others can be typed
# SQLite limits the number of parameters of a statement to some thousands.
_CHUNK = 500


@final
class Reader:
    """Reads one state of an index. `Index` has the same methods, with their errors.

    Args:
        connection: the database, in a transaction.
        home: the folder whose `runs/` holds the runs.
    """

    def __init__(self, connection: sqlite3.Connection, home: Path) -> None:
        self._connection, self._home = connection, home
        self._fields = Fields(connection)

    def runs(
        self, filter: str, sort: str, columns: Sequence[str], limit: int, offset: int
    ) -> RunPage:
        """Return a page of the runs that match a filter."""
        shown = _columns(self._fields, columns)
        joins, order = ordering(self._fields, sort)
        condition = where(self._fields, filter)
        numbers = self._column(
            f"SELECT r.number FROM runs r{joins.text} WHERE {condition.text}"
            f" ORDER BY {order}, r.ulid DESC",
            (*joins.parameters, *condition.parameters),
        )
        page = numbers[max(offset, 0) :][: max(limit, 0)]
        return RunPage(self._run_rows(page, shown), len(numbers))

    def groups(
        self, filter: str, sort: str, columns: Sequence[str], limit: int, offset: int
    ) -> GroupPage:
        """Return a page of the groups of the runs that match a filter."""
        shown = _columns(self._fields, columns)
        joins, order = ordering(self._fields, sort, grouped=True)
        condition = where(self._fields, filter)
        members = self._members_of_groups(condition)
        self._offer_means(members)
        names = self._column(
            f"SELECT r.grouping FROM runs r{joins.text} WHERE {condition.text}"
            f" GROUP BY r.grouping ORDER BY {order}, MAX(r.ulid) DESC",
            (*joins.parameters, *condition.parameters),
        )
        page = names[max(offset, 0) :][: max(limit, 0)]
        rows = [self._group_row(name, members[name], shown) for name in page]
        return GroupPage(rows, len(names))

    def members(self, group: str) -> list[RunRow]:
        """Return the runs of one group, newest first."""
        select = "SELECT number FROM runs WHERE grouping = ? ORDER BY created DESC, ulid DESC"
        return self._run_rows(self._column(select, (clean(group),)), {})

    def outlines(self, column: Literal["ulid", "grouping"], value: str, most: int) -> list[Outline]:
        """Return the newest runs with a value in a column."""
        select = (
            f"SELECT ulid, state, note, created, parent FROM runs WHERE {column} = ?"
            " ORDER BY created DESC, ulid DESC LIMIT ?"
        )
        rows = self._connection.execute(select, (clean(value), most)).fetchall()
        return [outline_of(row, self._home / "runs") for row in rows]

    def result_of(self, rows: Sequence[RunRow]) -> Result | None:
        """Return the result of runs of one group: a mean over independent samples."""
        select = "SELECT number FROM runs WHERE ulid = ?"
        numbers = [number for row in rows for number in self._column(select, (row.ulid,))]
        return self._result_of(numbers, rows, samples(rows)) if numbers else None

    def run(self, ulid: str) -> RunRow | None:
        """Return the run with an id; None if it is not in the index."""
        numbers = self._column("SELECT number FROM runs WHERE ulid = ?", (clean(ulid),))
        return self._run_rows(numbers, {})[0] if numbers else None

    def called(self, name: str) -> list[RunRow]:
        """Return the runs that a name may mean, newest first."""
        for test, value in _tests_of(name) if name else ():
            select = f"SELECT number FROM runs WHERE {test} ORDER BY ulid DESC"
            if numbers := self._column(select, (clean(value),)):
                return self._run_rows(numbers, {})
        return []

    def version(self) -> int:
        """Return a number that changes when another connection writes."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def keys(self) -> Keys:
        """Return the keys and values that can be used in filters, sort orders and columns."""
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

    def _members_of_groups(self, condition: Sql) -> dict[str, list[int]]:
        """Return the numbers of the runs that match, newest first, by group."""
        found: dict[str, list[int]] = {}
        for name, number in self._connection.execute(
            f"SELECT r.grouping, r.number FROM runs r WHERE {condition.text}"
            " ORDER BY r.created DESC, r.ulid DESC",
            condition.parameters,
        ):
            found.setdefault(name, []).append(number)
        return found

    def _column(self, select: str, parameters: Sequence[object] = ()) -> list[Any]:
        return [value for (value,) in self._connection.execute(select, tuple(parameters))]

    def _run_rows(self, numbers: Sequence[int], columns: dict[str, Field]) -> list[RunRow]:
        found: dict[int, RunRow] = {}
        results = self._results(numbers)
        table = Sql(f"SELECT number, {COLUMNS} FROM runs WHERE number")
        for number, *values in self._select_in(table, numbers):
            found[number] = from_columns(values, self._home / "runs", results.get(number))
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


def _tests_of(name: str) -> list[tuple[str, str]]:
    """Return what a run that is meant by a name satisfies, the surest first, and its parameter."""
    is_part = (
        f"substr(ulid, 1, length(?1)) = ?1 OR length(?1) >= {LEAST}"
        " AND (substr(ulid, -length(?1)) = ?1"
        f" OR substr(substr(ulid, -{SHORT}), 1, length(?1)) = ?1)"
    )
    is_id = (is_part, name.upper())
    is_name = ("name = ?1", name)
    if is_ulid(name):
        return [("ulid = ?1", name)]
    if name == LATEST:
        return [("?1 <> '' AND ulid = (SELECT MAX(ulid) FROM runs)", name)]
    return [is_id, is_name] if len(name) >= SHORT else [is_name, is_id]


def _columns(fields: Fields, keys: Sequence[str]) -> dict[str, Field]:
    if len(keys) > MOST_COLUMNS:
        raise UsageError(f"{len(keys)} columns: the limit is {MOST_COLUMNS}, remove some")
    return {key: fields.find(key) for key in keys}


def _original_value(number: int | float | None, text: str) -> object:
    """Return a setting's value as a number, a boolean, or text."""
    if number is None:
        return text
    return text == "true" if text in ("true", "false") else number
