"""The SQLite database of the index: its tables, and how it is opened.

The database is a cache that can always be built again: tables of another version are dropped, a
damaged file is moved aside, and if no place is writable, the database is in memory. A database of
another program with the same file name is not changed, nor anything else but a regular file.
"""

import contextlib
import fcntl
import functools
import os
import sqlite3
import stat
import unicodedata
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.index.seal import break_seal, seal

VERSION = 3
# Identifies our databases in the file header ("bkfl").
APPLICATION = 0x626B666C
BUSY_SECONDS = 5.0
_BESIDE = ("-wal", "-shm", "-journal")  # files that SQLite keeps beside a database
_NOT_DAMAGE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_AUTH,
)

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


@final
class Opened(NamedTuple):
    """An open database.

    Attributes:
        connection: the connection.
        path: its file; None if the database is in memory.
        identity: what distinguishes the file from one that replaces it.
        damage: why a file that was there before could not be used; empty if all was well.
    """

    connection: sqlite3.Connection
    path: Path | None
    identity: object
    damage: str


class NotAnIndex(Exception):
    """Something that is not ours has the name of an index, or of a file beside it."""


def open_database(places: Sequence[Path]) -> Opened:
    """Return a database at the first usable of `places`; in memory if none is usable."""
    damage = ""
    for path in places:
        try:
            return _open_file(path, damage)
        except NotAnIndex as error:
            damage = f"`{error}` is not an index, and stays: move it away"
        except (OSError, sqlite3.Error):
            continue
    memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    return Opened(_prepared(memory), None, None, damage)


def close_database(connection: sqlite3.Connection, path: Path | None) -> None:
    """Close a database; seal its file if no other process has it open."""
    connection.close()
    if path is None:
        return
    with contextlib.suppress(OSError), _exclusive(path):
        # SQLite removes the log when the last connection closes.
        if path.is_file() and not os.path.lexists(f"{path}-wal"):
            seal(path)


def identity_of(path: Path) -> object:
    """Return what distinguishes a file from one that replaces it; None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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


def move_aside(path: Path, identity: object) -> None:
    """Rename a damaged database and delete its write-ahead log, unless it was replaced already.

    Raises:
        OSError: it cannot be renamed.
    """
    with _exclusive(path):
        if identity_of(path) == identity:
            _move_aside(path)


def can_be_damage(error: Exception) -> bool:
    """Return whether an error may come from damaged content: not from the disk or from others."""
    return not isinstance(error, sqlite3.Error) or _code(error) not in _NOT_DAMAGE


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error means that another process holds the database."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def damage_in(connection: sqlite3.Connection) -> str:
    """Return what is wrong with a database as a whole, or an empty string."""
    try:
        _check_tables(connection)
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            return str(found)
        for table in _expected_tables():
            for _ in connection.execute(f'SELECT * FROM "{table}"'):
                pass
    except Exception as error:  # noqa: BLE001  (damage causes errors of many kinds)
        return str(error) if can_be_damage(error) else ""
    return ""


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _open_file(path: Path, damage: str) -> Opened:
    """Open the database at `path`; move it aside and make a new one if it is damaged.

    Raises:
        NotAnIndex: something else is there.
        OSError: the place is not usable.
        sqlite3.Error: the place is not usable.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _check_kinds(path)
    with _exclusive(path):
        try:
            if not break_seal(path):
                raise ValueError("another program changed it")
            connection = _prepared(_connected(path))
        except (NotAnIndex, OSError):
            raise
        except Exception as error:
            if not can_be_damage(error):
                raise
            damage = f"`{path}` was damaged ({error})"
            _move_aside(path)
            connection = _prepared(_connected(path))
        return Opened(connection, path, identity_of(path), damage)


def _check_kinds(path: Path) -> None:
    """Check that the file and those that SQLite keeps beside it are regular files, or missing.

    Raises:
        NotAnIndex: one is a folder, a link or a pipe.
    """
    for ending in ("", *_BESIDE):
        file = path.with_name(path.name + ending)
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise NotAnIndex(file)


def _move_aside(path: Path) -> None:
    for ending in _BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_name(f"{path.name}.damaged"))


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
            raise NotAnIndex(_file_of(connection))
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last writes of a cache, but must not damage it.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _pragma(connection, "user_version") != VERSION:
            with writing(connection):
                clear(connection)
        _check_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    """Check that the database has our tables and nothing else, such as triggers.

    Raises:
        ValueError: it has not.
    """
    if _schema(connection) != _expected_schema():
        raise ValueError("its tables are not those of an index")


def _schema(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    select = "SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL"
    return frozenset(connection.execute(select).fetchall())


@functools.cache
def _expected_schema() -> frozenset[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.executescript(TABLES)
        return _schema(memory)


def _expected_tables() -> list[str]:
    return [name for kind, name, _ in _expected_schema() if kind == "table"]


def _file_of(connection: sqlite3.Connection) -> str:
    return connection.execute("PRAGMA database_list").fetchone()[2]


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _folded_value(value: object) -> str | None:
    return folded(value) if isinstance(value, str) else None
