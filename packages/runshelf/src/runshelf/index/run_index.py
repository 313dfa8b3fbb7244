"""The index of a home: updated from the run folders, queried for pages of runs and groups.

If it turns out to be damaged, it is built again from the folders, and one line on stderr says so.
"""

import contextlib
import functools
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TypeVar, final

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
from runshelf.index.location import places
from runshelf.index.reader import Reader
from runshelf.index.refresh import Problem, Report
from runshelf.index.rows import (
    DamagedRow,
    GroupPage,
    Keys,
    Outline,
    RunPage,
    RunRow,
)
from runshelf.index.sql_conditions import (
    NEWEST_FIRST,
)
from runshelf.store.finding import find_run
from runshelf.store.home import INDEX, has_runs, make_shared, shared
from runshelf.store.results import Result
from runshelf.terminal_text import put

P = ParamSpec("P")
T = TypeVar("T")


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
        with self._reading() as reader:
            return reader.runs(filter, sort, columns, limit, offset)

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
        with self._reading() as reader:
            return reader.groups(filter, sort, columns, limit, offset)

    @_repaired
    def members(self, group: str) -> list[RunRow]:
        """Return the runs of one group, newest first. The name must match exactly."""
        with self._reading() as reader:
            return reader.members(group)

    @_repaired
    def outlines(self, column: Literal["ulid", "grouping"], value: str, most: int) -> list[Outline]:
        """Return the newest runs with a value in a column; takes little time for any runs."""
        with self._reading() as reader:
            return reader.outlines(column, value, most)

    @_repaired
    def result_of(self, rows: Sequence[RunRow]) -> Result | None:
        """Return the result of runs of one group: a mean over independent samples."""
        with self._reading() as reader:
            return reader.result_of(rows)

    @_repaired
    def run(self, ulid: str) -> RunRow | None:
        """Return the run with an id; None if it is not in the index."""
        with self._reading() as reader:
            return reader.run(ulid)

    @_repaired
    def called(self, name: str) -> list[RunRow]:
        """Return the runs that a name may mean, newest first: as `find`, but opens no folder."""
        with self._reading() as reader:
            return reader.called(name)

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
        with self._reading() as reader:
            return reader.version()

    @_repaired
    def keys(self) -> Keys:
        """Return the keys and values that can be used in filters, sort orders and columns."""
        with self._reading() as reader:
            return reader.keys()

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
    def _reading(self) -> Generator[Reader, None, None]:
        """Make all reads see one state of the database."""
        self._connection.execute("BEGIN")
        try:
            yield Reader(self._connection, self.home)
        finally:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")


def open_index(home: Path) -> Index:
    """Return the index of `home` in its last state; `refresh` updates it."""
    return Index(home)


def _unusable(error: sqlite3.Error) -> UserFacingError:
    return UserFacingError(f"the index cannot be used ({error}): type runshelf reindex")
