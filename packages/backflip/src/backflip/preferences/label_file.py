"""The SQLite file of the label store: opening, transactions, errors. Needs no JAX.

A finished transaction is on disk. Several processes may have the file open: the trainer adds
queries, and a page or a simulated teacher adds labels.
"""

import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast, final

from backflip.preferences.label_place import damaged, lost, refuse_links, refuse_missing
from backflip.preferences.label_schema import (
    check_ours,
    is_empty,
    migrate,
    needs_migration,
    pragma,
    version_of,
)
from runshelf.errors import DamagedFile, UserFacingError
from runshelf.store.files import disk_full

LABELS = "labels.sqlite"  # inside a run's folder

_BUSY_SECONDS = 30.0
_MERGE_SECONDS = 1.0  # most time to wait for readers when the write-ahead log is merged


@final
class LabelFile:
    """An open label file, made by `open`; a context manager."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "LabelFile":
        """Open the file at `path`; create it if missing, migrate it if old.

        Raises:
            DamagedFile: the file is damaged, a link, or not a label file of a known version.
            UserFacingError: the file cannot be opened, or the disk is full.
        """
        refuse_links(path)
        connection = _connect(path, str(path))
        try:
            with _sqlite_errors(path):
                _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    @classmethod
    def open_existing(cls, path: Path) -> "LabelFile":
        """Open the label file of a run that exists; migrate it if old.

        Raises:
            DamagedFile: as of `open`, or the file is missing or empty.
            UserFacingError: the file cannot be opened, or the disk is full.
        """
        with closing(_connect_to_read(path)) as connection:
            _refuse_empty(connection, path)
        return cls.open(path)

    @classmethod
    def open_to_read(cls, path: Path) -> "LabelFile":
        """Open the file at `path` read-only, without migration; other processes may write to it.

        Raises:
            DamagedFile: the file is missing, empty, damaged, a link, or not a label file of a known
                version.
            UserFacingError: the file cannot be opened.
        """
        connection = _connect_to_read(path)
        try:
            _refuse_empty(connection, path)
            with _sqlite_errors(path):
                check_ours(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def version(self) -> int:
        """Return the version of the tables; the newest unless opened with `open_to_read`."""
        with _sqlite_errors(self.path):
            return version_of(self._connection)

    def close(self) -> None:
        """Close the file."""
        with _sqlite_errors(self.path):
            self._connection.close()

    def __enter__(self) -> "LabelFile":
        """Return the file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def rows(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Return the rows of one SELECT."""
        with _sqlite_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Run the block as one transaction, which is on disk when the block ends."""
        with _sqlite_errors(self.path), _transaction(self._connection):
            yield self._connection

    def changes(self) -> int:
        """Return a number that changes when another process writes."""
        with _sqlite_errors(self.path):
            return int(cast("int", pragma(self._connection, "data_version")))

    def merge_log(self) -> None:
        """Move the write-ahead log into the file, which then has all labels by itself.

        While another process reads, it may have to stay; the next call moves it.
        """
        with _sqlite_errors(self.path):
            self._connection.execute(f"PRAGMA busy_timeout = {_MERGE_SECONDS * 1000:.0f}")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")

    def copy_to(self, path: Path) -> None:
        """Write a copy of the file; other processes may write to the original meanwhile.

        Raises:
            UserFacingError: the disk is full.
        """
        with _sqlite_errors(path), closing(sqlite3.connect(path)) as copy:
            self._connection.backup(copy)

    def damaged(self, what: str) -> DamagedFile:
        """Return the error for a damaged file."""
        return damaged(self.path, what)


def _connect_to_read(path: Path) -> sqlite3.Connection:
    refuse_links(path)
    refuse_missing(path)
    return _connect(path, f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _connect(path: Path, address: str, *, uri: bool = False) -> sqlite3.Connection:
    with _sqlite_errors(path):
        connection = sqlite3.connect(address, _BUSY_SECONDS, isolation_level=None, uri=uri)
    # Text that is not UTF-8, in a damaged or received file, spoils nothing but itself.
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


def _refuse_empty(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file without tables: what it had was in a write-ahead log that is gone."""
    with _sqlite_errors(path):
        if is_empty(connection):
            raise lost(path, "has no tables")


def insert(connection: sqlite3.Connection, statement: str, values: Sequence[object]) -> int:
    """Insert one row and return its id."""
    return cast("int", connection.execute(statement, values).lastrowid)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    # IMMEDIATE: no other process can write between the checks inside and the commit.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # With a full disk SQLite may have rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create or migrate the tables, after a check that the file is ours or empty."""
    # Check first, because the file may belong to another program.
    if not is_empty(connection):
        check_ours(connection, path)
    _keep_a_write_ahead_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # Labels move into the file after each transaction, and not only once the log has 4 MB, so that
    # nothing is lost with the log.
    connection.execute("PRAGMA wal_autocheckpoint = 1")
    connection.execute("PRAGMA foreign_keys = ON")
    if needs_migration(connection):
        with _transaction(connection):
            migrate(connection)
    check_ours(connection, path)


def _keep_a_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL mode; wait while other processes open it at the same time."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here, whatever the timeout of the connection.
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


@contextmanager
def _sqlite_errors(path: Path) -> Generator[None, None, None]:
    """Convert an SQLite error inside the block to one line that names `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, path) from error
    except UnicodeDecodeError as error:
        # SQLite's message may quote damaged text, which Python cannot always decode.
        raise damaged(path, "text in it is not UTF-8") from error


def _explained(error: sqlite3.Error, path: Path) -> UserFacingError:
    # Errors of the sqlite3 module itself have no code. The low byte is the kind of error.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    match code & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(path, str(error))
        case sqlite3.SQLITE_FULL:
            return UserFacingError(disk_full(path))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return UserFacingError(
                f"another process locks `{path}` (waited {_BUSY_SECONDS:g} s): stop that process"
            )
        case _:
            return UserFacingError(f"cannot read or write `{path}`: {error}")
