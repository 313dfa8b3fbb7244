"""The index's database: its tables, and opening it wherever it can be kept.

It is a cache. Any problem with it is solved by building it again: tables of another version are
dropped, a damaged file is moved aside, and where nothing can be written it is in memory. A database
of somebody else's that happens to have the name is left alone.
"""

import contextlib
import fcntl
import os
import sqlite3
import unicodedata
from collections.abc import Generator, Sequence
from pathlib import Path

VERSION = 1
# Says in the file's header whose it is ("bkfl").
APPLICATION = 0x626B666C
BUSY_SECONDS = 5.0

TABLES = """
CREATE TABLE runs(
    number INTEGER PRIMARY KEY,
    ulid TEXT NOT NULL UNIQUE,
    name TEXT, grouping TEXT NOT NULL, command TEXT NOT NULL, env TEXT, algorithm TEXT,
    state TEXT NOT NULL, note TEXT NOT NULL, since TEXT NOT NULL,
    question TEXT, tags TEXT NOT NULL, seeds TEXT NOT NULL, parent TEXT,
    created REAL NOT NULL, seconds REAL, cost REAL, words TEXT NOT NULL,
    stamp INTEGER NOT NULL, beat INTEGER NOT NULL, metrics_stamp TEXT NOT NULL,
    summarised REAL NOT NULL, summary_seconds REAL NOT NULL
) STRICT;
CREATE INDEX runs_by_group ON runs(grouping);
CREATE TABLE keys(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE settings(
    key INTEGER NOT NULL, run INTEGER NOT NULL, number ANY, text TEXT NOT NULL,
    PRIMARY KEY(key, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX settings_by_run ON settings(run);
CREATE TABLE metrics(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE summaries(
    metric INTEGER NOT NULL, run INTEGER NOT NULL,
    last REAL, minimum REAL, maximum REAL, mean REAL, count INTEGER NOT NULL,
    PRIMARY KEY(metric, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_by_run ON summaries(run);
"""


def open_database(places: Sequence[Path]) -> tuple[sqlite3.Connection, Path | None]:
    """Return the database at the first of `places` where one can be kept, and that place.

    If it can be kept nowhere it is in memory, and its place is None.
    """
    for path in places:
        with contextlib.suppress(OSError, sqlite3.Error):
            return _open_file(path), path
    memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    return _prepared(memory), None


def clear(connection: sqlite3.Connection) -> None:
    """Drop all tables and make them again, within the transaction that is open."""
    drop = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (name,) in connection.execute(drop).fetchall():
        quoted = name.replace('"', '""')
        connection.execute(f'DROP TABLE "{quoted}"')
    for statement in TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Hold the one transaction that may write; undone if the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def folded(text: str) -> str:
    """Return text as it is compared: without regard to case or to how accents are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def move_aside(path: Path) -> None:
    """Give a damaged database another name, and its log of writes with it."""
    for ending in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_name(f"{path.name}.damaged"))


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error is about what the file holds, not about who else uses it."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error is that others have been writing for too long."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _open_file(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileExistsError(path)  # whatever it is, it is not ours
    with _alone(path):
        try:
            return _prepared(_connected(path))
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            move_aside(path)
            return _prepared(_connected(path))


@contextlib.contextmanager
def _alone(path: Path) -> Generator[None, None, None]:
    """Keep others from opening or removing the database during the block.

    A log of writes belongs to one file. Who opens a database while another replaces it could
    otherwise find the log of the new one beside the old one.
    """
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
    )


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return a connection whose tables are there and of this version."""
    try:
        connection.create_function("folded", 1, _folded_value, deterministic=True)
        _check_ours(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        # A cache may lose what was written before a power cut, but no more than that.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _pragma(connection, "user_version") != VERSION:
            with writing(connection):
                clear(connection)
        for table in ("runs", "keys", "settings", "metrics", "summaries"):
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ours(connection: sqlite3.Connection) -> None:
    """Refuse a database that others made.

    Raises:
        FileExistsError: it is one.
    """
    made = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
    if made and _pragma(connection, "application_id") != APPLICATION:
        raise FileExistsError("a database of another program")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _folded_value(value: object) -> str | None:
    return folded(value) if isinstance(value, str) else None
