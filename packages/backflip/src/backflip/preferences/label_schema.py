"""The tables of a label file in each version, and their migration. Needs no JAX.

Triggers keep the tables append-only.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import cast

from backflip.preferences.label_place import damaged
from runshelf.errors import DamagedFile

APPLICATION_ID = 0x626B666C  # "bkfl": identifies label files among SQLite files

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
MIGRATIONS = (
    _with_triggers(_VERSION_1, "clips", "queries", "labels"),
    _with_triggers(_VERSION_2, "films", "takes", "sayings"),
    _VERSION_3,
    _with_triggers(_VERSION_4, "clip_sets", "scores"),
)
SCHEMA = len(MIGRATIONS)


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a file has no tables yet."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return tables == 0 and pragma(connection, "user_version") == 0


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the tables; 0 if there are none."""
    return cast("int", pragma(connection, "user_version"))


def needs_migration(connection: sqlite3.Connection) -> bool:
    """Return whether a file has no tables yet, or those of an older version."""
    return is_empty(connection) or version_of(connection) < SCHEMA


def migrate(connection: sqlite3.Connection) -> None:
    """Create or migrate the tables inside the open transaction."""
    _run_migrations(connection, MIGRATIONS[version_of(connection) :])
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _run_migrations(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    for statements in migrations:
        statement = ""
        for line in statements.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose tables are not ours, or are damaged.

    Raises:
        DamagedFile: the message says what is wrong.
    """
    if pragma(connection, "application_id") != APPLICATION_ID:
        raise DamagedFile(f"`{path}` is not a label store of backflip: move it to another folder")
    version = version_of(connection)
    if not 1 <= version <= SCHEMA:
        raise DamagedFile(
            f"`{path}` is a label store of version {version}, this backflip reads {SCHEMA}: "
            "use the backflip that wrote it"
        )
    if not _are_ours(_schema(connection), _expected_schema(version)):
        raise damaged(path, "its tables are not those of a label store")
    problem = _problem(connection, version)
    if problem:
        raise damaged(path, problem)


def _problem(connection: sqlite3.Connection, version: int) -> str:
    """Return what is damaged in the tables; empty if nothing is found.

    SQLite has no checksums. A flipped bit in an index hides rows from queries that use the index,
    which `quick_check` does not notice; one in a reference hides rows from joins.
    """
    verdict = pragma(connection, "integrity_check(1)")
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
        _run_migrations(connection, MIGRATIONS[:version])
        return _schema(connection)


def _are_ours(found: _Schema, expected: _Schema) -> bool:
    """Return whether all statements of a file are expected, or those of further plain tables.

    A view or a trigger of a received file could run without end.
    """
    return all(
        statement == expected[name] if name in expected else statement.startswith("CREATE TABLE ")
        for name, statement in found.items()
    )


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """Return the value of a PRAGMA."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
