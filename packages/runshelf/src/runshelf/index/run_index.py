"""The index of a home: brought up to date from its folders, asked for pages of runs and groups."""

import contextlib
import json
import math
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, final

from runshelf.errors import UsageError, UserFacingError
from runshelf.index import refresh as folders
from runshelf.index.database import (
    clear,
    is_busy,
    is_damage,
    move_aside,
    open_database,
    writing,
)
from runshelf.index.entry import clean
from runshelf.index.filter_syntax import parse_filter, parse_sort
from runshelf.index.location import places
from runshelf.index.refresh import Problem, Report
from runshelf.index.rows import (
    COLUMNS,
    GroupPage,
    GroupRow,
    Keys,
    RunPage,
    RunRow,
    from_columns,
)
from runshelf.index.sql_conditions import (
    Field,
    Fields,
    Order,
    Sql,
    condition,
    joined,
    order,
)
from runshelf.store.run import find_run

NEWEST_FIRST = "-created"
MOST_COLUMNS = 200
# A statement of SQLite takes no more parameters than some thousands; this many at a time.
_AT_ONCE = 500


@final
class Index:
    """A cache of what the run folders of a home say; any thread may use it.

    Attributes:
        home: the folder whose `runs/` holds the runs.
        path: where the index is; None if it could be kept nowhere and is in memory.
    """

    def __init__(self, home: Path) -> None:
        """Open the index of `home`, or make an empty one; `refresh` fills it."""
        self.home = home
        self._lock = threading.RLock()
        self._open()

    def refresh(self, report: Report | None = None) -> list[Problem]:
        """Bring the index up to date with the folders; return the folders that were skipped.

        Where the index cannot be written, it stays as it is, and the last problem says so.

        Args:
            report: called with the progress of reading, every few hundred folders.
        """
        with self._lock:
            if self.path is None and self._places != self._choose():
                self._open()
            try:
                return folders.refresh(self._connection, self.home, report)
            except sqlite3.Error as error:
                return self._mended(error, report)

    def rebuild(self, report: Report | None = None) -> list[Problem]:
        """Empty the index and fill it again from the folders; return those that were skipped.

        Raises:
            UserFacingError: it cannot be written.
        """
        with self._lock:
            try:
                with writing(self._connection):
                    clear(self._connection)
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise _failed(error) from error
                self._move_aside()
        return self.refresh(report)

    def runs(
        self,
        filter: str = "",
        sort: str = NEWEST_FIRST,
        columns: Sequence[str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> RunPage:
        """Return some of the runs that a filter lets through.

        Args:
            filter: as `filters` describes it; empty for all.
            sort: keys with commas between, `-` before one for largest first.
            columns: keys whose values to return with each run.
            limit: at most how many.
            offset: how many to pass over.

        Raises:
            UsageError: the filter, the order or a column cannot be understood.
        """
        with self._reading() as fields:
            shown = _columns(fields, columns)
            where = _where(fields, filter)
            by = _orders(fields, sort, grouped=False)
            numbers = self._numbers(where, by)
            page = numbers[max(offset, 0) :][: max(limit, 0)]
            return RunPage(self._run_rows(page, shown), len(numbers))

    def groups(
        self,
        filter: str = "",
        sort: str = NEWEST_FIRST,
        columns: Sequence[str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> GroupPage:
        """Return some of the groups of the runs that a filter lets through.

        Args:
            filter: as of `runs`.
            sort: as of `runs`, and `runs` for how many a group has.
            columns: keys whose values to return with each group.
            limit: at most how many.
            offset: how many to pass over.

        Raises:
            UsageError: the filter, the order or a column cannot be understood.
        """
        with self._reading() as fields:
            shown = _columns(fields, columns)
            where = _where(fields, filter)
            names = self._group_names(where, _orders(fields, sort, grouped=True))
            page = names[max(offset, 0) :][: max(limit, 0)]
            members = self._members(where)
            rows = [self._group_row(name, members[name], shown) for name in page]
            return GroupPage(rows, len(names))

    def members(self, group: str) -> list[RunRow]:
        """Return the runs of just this group, newest first."""
        with self._reading():
            select = "SELECT number FROM runs WHERE grouping = ? ORDER BY created DESC, ulid DESC"
            numbers = self._connection.execute(select, (clean(group),)).fetchall()
            return self._run_rows([number for (number,) in numbers], {})

    def run(self, ulid: str) -> RunRow | None:
        """Return the run of an id; None if it is not in the index."""
        with self._reading():
            found = self._connection.execute(
                "SELECT number FROM runs WHERE ulid = ?", (clean(ulid),)
            ).fetchone()
            return self._run_rows([found[0]], {})[0] if found else None

    def find(self, name: str) -> RunRow:
        """Return the run that `name` means, as `archive.run.find_run` does.

        Raises:
            UsageError: no run is meant, or more than one; the nearest ones are named.
        """
        found = find_run(self.home, name)
        row = self.run(found.ulid)
        if row is None:
            self.refresh()
            row = self.run(found.ulid)
        if row is None:
            raise UsageError(f"run `{found.ulid}` is not in `{self.home / 'runs'}`")
        return row

    def version(self) -> int | None:
        """Return a number that is another once another index of this home has changed it.

        None where there can be no other: then it changes without a sign.
        """
        if self.path is None:
            return None
        with self._reading():
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def keys(self) -> Keys:
        """Return what can be filtered by, sorted by and shown."""
        with self._reading():
            return Keys(
                config=self._column(
                    "SELECT name FROM keys k WHERE EXISTS"
                    " (SELECT 1 FROM settings WHERE key = k.number) ORDER BY name"
                ),
                metrics=self._column(
                    "SELECT name FROM metrics m WHERE EXISTS"
                    " (SELECT 1 FROM summaries WHERE metric = m.number) ORDER BY name"
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
            self._connection.close()

    def __enter__(self) -> "Index":
        """Return the index."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the database."""
        self.close()

    def _choose(self) -> list[Path]:
        """Return where the index may be kept: nowhere as long as there is nothing to index."""
        return places(self.home) if (self.home / "runs").is_dir() else []

    def _open(self) -> None:
        self._places = self._choose()
        self._connection, self.path = open_database(self._places)

    def _mended(self, error: sqlite3.Error, report: Report | None) -> list[Problem]:
        """Return what `refresh` does once the index has been mended or moved, if that helps."""
        if self.path is not None and not is_busy(error):
            if is_damage(error):
                self._move_aside()
            else:  # its disk is full, or may not be written any more
                self._connection.close()
                others = self._places[self._places.index(self.path) + 1 :]
                self._connection, self.path = open_database(others)
            with contextlib.suppress(sqlite3.Error):
                return folders.refresh(self._connection, self.home, report)
        return [Problem(self.home, f"the index may be behind the folders ({error})")]

    def _move_aside(self) -> None:
        self._connection.close()
        if self.path is not None:
            with contextlib.suppress(OSError):
                move_aside(self.path)
        self._open()

    @contextlib.contextmanager
    def _reading(self) -> Generator[Fields, None, None]:
        """Keep other threads out, and everything that is read of one moment."""
        with self._lock:
            try:
                self._connection.execute("BEGIN")
                try:
                    yield Fields(self._connection)
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise _failed(error) from error

    def _column(self, select: str) -> list[str]:
        return [value for (value,) in self._connection.execute(select)]

    def _numbers(self, where: Sql, by: "_Orders") -> list[int]:
        """Return the numbers of all runs that a condition holds for, in order."""
        rows = self._connection.execute(
            f"SELECT r.number FROM runs r{by.joins.text} WHERE {where.text}"
            f" ORDER BY {by.text}, r.ulid DESC",
            (*by.joins.parameters, *where.parameters),
        )
        return [number for (number,) in rows]

    def _group_names(self, where: Sql, by: "_Orders") -> list[str]:
        rows = self._connection.execute(
            f"SELECT r.grouping FROM runs r{by.joins.text} WHERE {where.text}"
            f" GROUP BY r.grouping ORDER BY {by.text}, MAX(r.ulid) DESC",
            (*by.joins.parameters, *where.parameters),
        )
        return [name for (name,) in rows]

    def _members(self, where: Sql) -> dict[str, list[int]]:
        """Return the numbers of the runs that a condition holds for, by group, newest first."""
        members: dict[str, list[int]] = {}
        for name, number in self._connection.execute(
            f"SELECT r.grouping, r.number FROM runs r WHERE {where.text}"
            " ORDER BY r.created DESC, r.ulid DESC",
            where.parameters,
        ):
            members.setdefault(name, []).append(number)
        return members

    def _run_rows(self, numbers: Sequence[int], columns: dict[str, Field]) -> list[RunRow]:
        found: dict[int, RunRow] = {}
        for part in _parts(numbers):
            select = f"SELECT number, {COLUMNS} FROM runs WHERE number IN ({_marks(part)})"
            for number, *values in self._connection.execute(select, part):
                found[number] = from_columns(values, self.home / "runs")
        for name, field in columns.items():
            for part in _parts(numbers):
                for number, value in self._values(field, part):
                    found[number].values[name] = value
        return [found[number] for number in numbers]

    def _values(self, field: Field, numbers: Sequence[int]) -> Iterator[tuple[int, object]]:
        """Yield the numbers of the runs that have a key, with its values."""
        marks = _marks(numbers)
        match field.kind:
            case "setting":
                select = (
                    f"SELECT run, number, text FROM settings WHERE key = ? AND run IN ({marks})"
                )
                for run, number, text in self._connection.execute(select, (field.number, *numbers)):
                    yield run, _shown(number, text)
            case "metric":
                select = f"SELECT run, {field.column} FROM summaries WHERE metric = ?"
                select += f" AND run IN ({marks})"
                for run, value in self._connection.execute(select, (field.number, *numbers)):
                    yield run, math.nan if value is None else value
            case kind:
                select = f"SELECT r.number, {field.column} FROM runs r WHERE r.number IN ({marks})"
                for run, value in self._connection.execute(select, tuple(numbers)):
                    if value is not None:
                        yield run, json.loads(value) if kind == "many" else value

    def _group_row(self, name: str, numbers: Sequence[int], columns: dict[str, Field]) -> GroupRow:
        rows = self._run_rows(numbers, {})
        states = [row.state for row in rows]
        seeds = sorted({seed for row in rows for seed in row.seeds})
        return GroupRow(
            group=name,
            runs=len(rows),
            seeds=seeds,
            n=len(seeds) + sum(not row.seeds for row in rows),
            states={state: states.count(state) for state in sorted(set(states))},
            question=next((row.question for row in rows if row.question), None),
            created=rows[0].created,
            env=rows[0].env,
            algorithm=rows[0].algorithm,
            values=dict(self._group_values(numbers, columns)),
        )

    def _group_values(
        self, numbers: Sequence[int], columns: dict[str, Field]
    ) -> Iterator[tuple[str, object]]:
        for name, field in columns.items():
            values = [v for part in _parts(numbers) for _, v in self._values(field, part)]
            if values:
                yield name, _together(field, values)


def open_index(home: Path) -> Index:
    """Return the index of `home`, as it was left; `refresh` brings it up to date."""
    return Index(home)


class _Orders(NamedTuple):
    joins: Sql
    text: str


def _orders(fields: Fields, sort: str, *, grouped: bool) -> _Orders:
    found: list[Order] = []
    for count, key in enumerate(parse_sort(sort) or parse_sort(NEWEST_FIRST)):
        if grouped and key.key == "runs":
            found.append(Order(Sql(""), [f"COUNT(*) {'DESC' if key.descending else 'ASC'}"]))
            continue
        field = fields.find(key.key, key.position)
        found.append(order(field, f"s{count}", descending=key.descending, grouped=grouped))
    joins = Sql(
        "".join(each.joins.text for each in found),
        tuple(value for each in found for value in each.joins.parameters),
    )
    return _Orders(joins, ", ".join(term for each in found for term in each.terms))


def _where(fields: Fields, text: str) -> Sql:
    return joined(condition(fields, term) for term in parse_filter(text))


def _columns(fields: Fields, keys: Sequence[str]) -> dict[str, Field]:
    if len(keys) > MOST_COLUMNS:
        raise UsageError(f"{len(keys)} columns: at most {MOST_COLUMNS} are shown, leave some out")
    return {key: fields.find(key) for key in keys}


def _shown(number: int | float | None, text: str) -> object:
    """Return a setting's value as it was: a number, a boolean, or text."""
    if number is None:
        return text
    return text == "true" if text in ("true", "false") else number


def _together(field: Field, values: Sequence[Any]) -> object:
    """Return one value for a group."""
    if field.kind == "metric":
        return sum(values) / len(values)
    if field.kind == "number":
        return sum(values)
    different = {json.dumps(value) for value in values}
    return values[0] if len(different) == 1 else f"{len(different)} values"


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), _AT_ONCE):
        yield numbers[first : first + _AT_ONCE]


def _marks(numbers: Sequence[int]) -> str:
    return ", ".join("?" * len(numbers))


def _failed(error: sqlite3.Error) -> UserFacingError:
    return UserFacingError(f"the index cannot be used ({error}): type runshelf reindex")
