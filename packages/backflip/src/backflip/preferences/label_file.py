"""The SQLite file of the label store: tables, migrations, errors. Needs no JAX.

Triggers keep the tables append-only. A finished transaction is on disk. Several processes may have
the file open: the trainer adds queries, and a page or a simulated teacher adds labels.
"""

import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast, final

from backflip.preferences.label_place import lost, refuse_links, refuse_missing
from runshelf.errors import DamagedFile, UserFacingError
from runshelf.store.files import disk_full

LABELS = "labels.sqlite"  # inside a run's folder

_APPLICATION_ID = 0x626B666C  # "bkfl": identifies label files among SQLite files
_BUSY_SECONDS = 30.0
_MERGE_SECONDS = 1.0  # most time to wait for readers when the write-ahead log is merged

_VERSION_1 = """
CREATE TABLE clips (
    id INTEGER PRIMARY KEY,
    seed INTEGER NOT NULL,
    env_steps INTEGER NOT NULL,
    arrays BLOB NOT NULL
) STRICT;
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,
    seed INTEGER NOT NULL,
    left_clip INTEGER NOT NULL REFERENCES clips (id),
    right_clip INTEGER NOT NULL REFERENCES clips (id),
    asked_at TEXT NOT NULL
) STRICT;
CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES queries (id),
    answer TEXT CHECK (answer IN ('left', 'right', 'tie', 'skip')),
    undoes INTEGER REFERENCES labels (id),
    who TEXT NOT NULL,
    at TEXT NOT NULL,
    seconds REAL NOT NULL,
    CHECK ((answer IS NULL) <> (undoes IS NULL))
) STRICT;
CREATE INDEX queries_of_seed ON queries (seed);
CREATE INDEX labels_of_query ON labels (query);
CREATE INDEX labels_undone ON labels (undoes);
CREATE VIEW effective AS
    SELECT * FROM labels WHERE answer IS NOT NULL
    AND id NOT IN (SELECT undoes FROM labels WHERE undoes IS NOT NULL);
"""
# Version 2, for answers by people. A query that `repeats` another one measures the teachers;
# `origin` is the run or file of an imported query; `opinion` is the reward model's prediction when
# the query was made; `attempt` identifies one keystroke, so sending it again records nothing.
_VERSION_2 = """
ALTER TABLE queries ADD COLUMN repeats INTEGER REFERENCES queries (id);
ALTER TABLE queries ADD COLUMN origin TEXT;
ALTER TABLE queries ADD COLUMN opinion BLOB;
ALTER TABLE labels ADD COLUMN attempt TEXT;
CREATE UNIQUE INDEX labels_attempt ON labels (attempt) WHERE attempt IS NOT NULL;
CREATE INDEX queries_repeating ON queries (repeats) WHERE repeats IS NOT NULL;
CREATE INDEX labels_by ON labels (who, id);
DROP VIEW effective;
CREATE VIEW effective AS
    SELECT * FROM labels l WHERE answer IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM labels u WHERE u.undoes = l.id);
CREATE TABLE films (
    id INTEGER PRIMARY KEY,
    clip INTEGER NOT NULL REFERENCES clips (id),
    view TEXT NOT NULL CHECK (view IN ('person', 'agent')),
    about TEXT NOT NULL
) STRICT;
CREATE INDEX films_of_clip ON films (clip, view);
CREATE TABLE takes (
    id INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES queries (id),
    who TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX takes_of_query ON takes (query, id);
CREATE INDEX takes_at ON takes (at);
CREATE TABLE sayings (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    who TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
"""
# Version 3, for redo and corrections. A record may undo an undo, which restores the answer. An
# answer that `replaces` an older one corrects it. `standing` has the records that are not undone.
_VERSION_3 = """
ALTER TABLE labels ADD COLUMN replaces INTEGER REFERENCES labels (id);
CREATE INDEX labels_replaced ON labels (replaces) WHERE replaces IS NOT NULL;
DROP VIEW effective;
CREATE VIEW standing AS
    SELECT * FROM labels l WHERE NOT EXISTS (
        SELECT 1 FROM labels u WHERE u.undoes = l.id
        AND NOT EXISTS (SELECT 1 FROM labels r WHERE r.undoes = u.id));
CREATE VIEW effective AS
    SELECT * FROM standing s WHERE answer IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM standing c WHERE c.replaces = s.id);
"""
# Version 4, for answers about several clips at once: a set of clips is ranked, or rated one by one.
# The queries of a set are all pairs of its clips. `scores` keeps what was said about each clip; the
# rows of the answer in force count, which have its time.
_VERSION_4 = """
CREATE TABLE clip_sets (
    id INTEGER PRIMARY KEY,
    ask TEXT NOT NULL CHECK (ask IN ('rank', 'rate')),
    asked_at TEXT NOT NULL
) STRICT;
ALTER TABLE queries ADD COLUMN clip_set INTEGER REFERENCES clip_sets (id);
CREATE INDEX queries_of_set ON queries (clip_set) WHERE clip_set IS NOT NULL;
CREATE TABLE scores (
    id INTEGER PRIMARY KEY,
    clip_set INTEGER NOT NULL REFERENCES clip_sets (id),
    clip INTEGER NOT NULL REFERENCES clips (id),
    score REAL NOT NULL,
    who TEXT NOT NULL,
    at TEXT NOT NULL,
    seconds REAL NOT NULL
) STRICT;
CREATE INDEX scores_of_set ON scores (clip_set, id);
"""
# INSERT OR REPLACE deletes without calling DELETE triggers; the third trigger refuses it.
_TRIGGERS = """
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
"""


def _with_triggers(statements: str, *tables: str) -> str:
    return statements + "".join(_TRIGGERS.format(table=table) for table in tables)


# The statements that convert each version to the next, starting from an empty file.
_MIGRATIONS = (
    _with_triggers(_VERSION_1, "clips", "queries", "labels"),
    _with_triggers(_VERSION_2, "films", "takes", "sayings"),
    _VERSION_3,
    _with_triggers(_VERSION_4, "clip_sets", "scores"),
)
SCHEMA = len(_MIGRATIONS)


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
                _check_ours(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def version(self) -> int:
        """Return the version of the tables; `SCHEMA` unless opened with `open_to_read`."""
        with _sqlite_errors(self.path):
            return _version(self._connection)

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
            return int(cast("int", _pragma(self._connection, "data_version")))

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
        return DamagedFile(_damaged(self.path, what))


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
        if _is_empty(connection):
            raise lost(path, "has no tables")


def insert(connection: sqlite3.Connection, statement: str, values: Sequence[object]) -> int:
    """Insert one row and return its id."""
    return cast("int", connection.execute(statement, values).lastrowid)


def now() -> str:
    """Return the current time in ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


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
    if not _is_empty(connection):
        _check_ours(connection, path)
    _keep_a_write_ahead_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # Labels move into the file after each transaction, and not only once the log has 4 MB, so that
    # nothing is lost with the log.
    connection.execute("PRAGMA wal_autocheckpoint = 1")
    connection.execute("PRAGMA foreign_keys = ON")
    if _is_empty(connection) or _version(connection) < SCHEMA:
        with _transaction(connection):
            _migrate(connection)
    _check_ours(connection, path)


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


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return tables == 0 and _pragma(connection, "user_version") == 0


def _version(connection: sqlite3.Connection) -> int:
    return cast("int", _pragma(connection, "user_version"))


def _migrate(connection: sqlite3.Connection) -> None:
    """Create or migrate the tables inside the open transaction."""
    _run_migrations(connection, _MIGRATIONS[_version(connection) :])
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _run_migrations(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    for statements in migrations:
        statement = ""
        for line in statements.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise DamagedFile(f"`{path}` is not a label store of backflip: move it to another folder")
    version = _version(connection)
    if not 1 <= version <= SCHEMA:
        raise DamagedFile(
            f"`{path}` is a label store of version {version}, this backflip reads {SCHEMA}: "
            "use the backflip that wrote it"
        )
    if not _are_ours(_schema(connection), _expected_schema(version)):
        raise DamagedFile(_damaged(path, "its tables are not those of a label store"))
    problem = _problem(connection, version)
    if problem:
        raise DamagedFile(_damaged(path, problem))


def _problem(connection: sqlite3.Connection, version: int) -> str:
    """Return what is damaged in the tables; empty if nothing is found.

    SQLite has no checksums. A flipped bit in an index hides rows from queries that use the index,
    which `quick_check` does not notice; one in a reference hides rows from joins.
    """
    verdict = _pragma(connection, "integrity_check(1)")
    if verdict != "ok":
        return str(verdict)
    for name, statement in _expected_schema(version).items():
        if statement.startswith("CREATE TABLE "):
            lost = connection.execute(f"PRAGMA foreign_key_check({name})").fetchone()
            if lost:
                return f"row {lost[1]} of {name} refers to a row of {lost[2]} that is missing"
    return ""


_Schema = Mapping[str, str]


def _schema(connection: sqlite3.Connection) -> _Schema:
    """Return the statements of tables, views, indexes and triggers by name."""
    # In a damaged file a statement may be stored as bytes.
    rows = connection.execute(
        "SELECT name, CAST(sql AS TEXT) FROM sqlite_schema WHERE sql IS NOT NULL"
    )
    return {name: " ".join(statement.split()) for name, statement in rows}


@cache
def _expected_schema(version: int) -> _Schema:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _run_migrations(connection, _MIGRATIONS[:version])
        return _schema(connection)


def _are_ours(found: _Schema, expected: _Schema) -> bool:
    """Return whether all statements of a file are expected, or those of further plain tables.

    A view or a trigger of a received file could run without end.
    """
    return all(
        statement == expected[name] if name in expected else statement.startswith("CREATE TABLE ")
        for name, statement in found.items()
    )


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@contextmanager
def _sqlite_errors(path: Path) -> Generator[None, None, None]:
    """Convert an SQLite error inside the block to one line that names `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, path) from error
    except UnicodeDecodeError as error:
        # SQLite's message may quote damaged text, which Python cannot always decode.
        raise DamagedFile(_damaged(path, "text in it is not UTF-8")) from error


def _explained(error: sqlite3.Error, path: Path) -> UserFacingError:
    # Errors of the sqlite3 module itself have no code. The low byte is the kind of error.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    match code & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DamagedFile(_damaged(path, str(error)))
        case sqlite3.SQLITE_FULL:
            return UserFacingError(disk_full(path))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return UserFacingError(
                f"another process locks `{path}` (waited {_BUSY_SECONDS:g} s): stop that process"
            )
        case _:
            return UserFacingError(f"cannot read or write `{path}`: {error}")


def _damaged(path: Path, what: str) -> str:
    one_line = " ".join(what.split())
    return (
        f"`{path}` is damaged ({one_line}): restore it from a copy, or recover the rest with "
        f"`sqlite3 {path.name} .recover`"
    )
