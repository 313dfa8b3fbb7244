"""The SQLite database of the index: its tables, and how it is opened.

The database is a cache that can always be built again: tables of another version are dropped, a
damaged file is moved aside, and if no place is writable, the database is in memory. A database of
another program with the same file name is not changed.
"""

import contextlib
import fcntl
import os
import sqlite3
import unicodedata
from collections.abc import Generator, Sequence
from pathlib import Path

VERSION = 3
# Identifies our databases in the file header ("bkfl").
APPLICATION = 0x626B666C
BUSY_SECONDS = 5.0

TABLES = """
CREATE TABLE runs(
    number INTEGER PRIMARY KEY,
    ulid TEXT NOT NULL UNIQUE,
    name TEXT, grouping TEXT NOT NULL, command TEXT NOT NULL, env TEXT, algorithm TEXT,
    state TEXT NOT NULL, note TEXT NOT NULL, since TEXT NOT NULL,
    question TEXT, tags TEXT NOT NULL, seeds TEXT NOT NULL, parent TEXT,
    source TEXT, code TEXT NOT NULL, content TEXT NOT NULL,
    created REAL NOT NULL, seconds REAL, cost REAL, words TEXT NOT NULL,
    stamp INTEGER NOT NULL, beat INTEGER NOT NULL, metrics_stamp TEXT NOT NULL,
    summarised REAL NOT NULL, summary_seconds REAL NOT NULL,
    result INTEGER
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
CREATE TABLE seed_summaries(
    metric INTEGER NOT NULL, run INTEGER NOT NULL, seed INTEGER NOT NULL,
    last REAL, minimum REAL, maximum REAL, mean REAL, count INTEGER NOT NULL,
    PRIMARY KEY(metric, run, seed)
) STRICT, WITHOUT ROWID;
CREATE INDEX seed_summaries_by_run ON seed_summaries(run);
CREATE TABLE named(metric TEXT NOT NULL) STRICT;
"""


def open_database(places: Sequence[Path]) -> tuple[sqlite3.Connection, Path | None]:
    """Return a database at the first usable of `places`, and that place.

    If no place is usable, the database is in memory, and its place is None.
    """
    for path in places:
        with contextlib.suppress(OSError, sqlite3.Error):
            return _open_file(path), path
    memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    return _prepared(memory), None


def clear(connection: sqlite3.Connection) -> None:
    """Drop all tables and create them again, within the open transaction."""
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
    """Hold the write transaction; roll it back if the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has already ended it
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def folded(text: str) -> str:
    """Return text for comparison: case folded, accents composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def move_aside(path: Path) -> None:
    """Rename a damaged database and delete its write-ahead log."""
    for ending in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_name(f"{path.name}.damaged"))


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means that the content of the file is damaged."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error means that another process holds the database."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _open_file(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileExistsError(path)  # not our file
    with _exclusive(path):
        try:
            return _prepared(_connected(path))
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            move_aside(path)
            return _prepared(_connected(path))


@contextlib.contextmanager
def _exclusive(path: Path) -> Generator[None, None, None]:
    """Keep other processes from opening or replacing the database during the block.

    A process that opens a database while another replaces it could otherwise combine the old file
    with the write-ahead log of the new one.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
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
    """Return a connection whose tables exist and have this version."""
    try:
        connection.create_function("folded", 1, _folded_value, deterministic=True)
        tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if tables and _pragma(connection, "application_id") != APPLICATION:
            raise FileExistsError("a database of another program")
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last writes of a cache, but must not damage it.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _pragma(connection, "user_version") != VERSION:
            with writing(connection):
                clear(connection)
        tables = ("runs", "keys", "settings", "metrics", "summaries", "seed_summaries", "named")
        for table in tables:
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _folded_value(value: object) -> str | None:
    return folded(value) if isinstance(value, str) else None
