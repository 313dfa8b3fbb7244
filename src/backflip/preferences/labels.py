"""The label store: clips, the queries made of them and the answers given, in one SQLite file.

Records are only ever added. An answer taken back is another record, which names the one it undoes;
triggers refuse everything else. Whatever a method returned from is on disk. Several processes may
have the file open: the trainer asks, a page or a simulated teacher answers. No JAX here.
"""

import math
import sqlite3
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, cast, final, get_args

import numpy as np
from safetensors import SafetensorError

from backflip.archive.checkpoint import disk_full, from_safetensors, to_safetensors
from backflip.core.errors import BackflipError, DamagedFile, UsageError, did_you_mean

Answer = Literal["left", "right", "tie", "skip"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)
SCHEMA = 1

_APPLICATION_ID = 0x626B666C  # "bkfl": tells our files from anybody else's SQLite
_BUSY_SECONDS = 30.0
# Level 1 packs pixels nearly as well as 6, several times faster.
_COMPRESSION = 1

_TABLES = """
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
# INSERT OR REPLACE deletes without asking a DELETE trigger, hence the third one.
_TRIGGERS = """
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
"""
_SCHEMA = _TABLES + "".join(_TRIGGERS.format(table=t) for t in ("clips", "queries", "labels"))

Clip = Mapping[str, np.ndarray]


class NewQuery(NamedTuple):
    """A query to add: two clips of one seed, recorded when it had taken `env_steps`."""

    seed: int
    left: Clip
    right: Clip
    env_steps: int


class NewLabel(NamedTuple):
    """An answer to add: to which query, by whom, after how many seconds of looking."""

    query: int
    answer: str
    who: str
    seconds: int | float


class Query(NamedTuple):
    """A query in the store, without its clips (`LabelStore.clips` has them)."""

    id: int
    seed: int
    env_steps: int
    asked_at: str


@final
@dataclass(frozen=True)
class LabelledPair:
    """An answered query with its clips.

    Attributes:
        query: the query's id.
        label: the answer's id; grows in the order of answering.
        answer: `left`, `right` or `tie`.
        left: the arrays of the clip shown on the left.
        right: the arrays of the clip shown on the right.
        env_steps: what the seed had taken when the clips were recorded.
        who: who answered.
    """

    query: int
    label: int
    answer: Answer
    left: dict[str, np.ndarray]
    right: dict[str, np.ndarray]
    env_steps: int
    who: str


class Counts(NamedTuple):
    """How many queries there are and how they stand; undone answers do not count."""

    queries: int
    pending: int
    left: int
    right: int
    tie: int
    skip: int

    @property
    def labels(self) -> int:
        """Answers in force, `skip` included."""
        return self.left + self.right + self.tie + self.skip


@final
class LabelStore:
    """The labels of one run. Use `open`; close it, or use it as a context manager."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "LabelStore":
        """Open the store at `path`; make it if there is none.

        Raises:
            DamagedFile: the file is damaged, or not a label store of this version.
            BackflipError: it cannot be opened, or there is no space to make it.
        """
        with _sqlite_errors(path):
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            with _sqlite_errors(path):
                _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def close(self) -> None:
        """Close the file."""
        with _sqlite_errors(self.path):
            self._connection.close()

    def __enter__(self) -> "LabelStore":
        """Return the store."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def add_query(self, seed: int, left: Clip, right: Clip, env_steps: int) -> int:
        """Add one query with its two clips and return its id; see `add_queries`."""
        return self.add_queries([NewQuery(seed, left, right, env_steps)])[0]

    def add_queries(self, queries: Iterable[NewQuery]) -> list[int]:
        """Add queries with their clips, all or none, and return their ids in the order given.

        Raises:
            UsageError: a clip holds an array that cannot be stored.
            BackflipError: the disk is full; nothing of these queries is kept.
        """
        # Packed before the transaction begins: other processes wait while one is open.
        packed = [(q.seed, q.env_steps, _pack(q.left), _pack(q.right)) for q in queries]
        with self._transaction() as connection:
            return [_insert_query(connection, *query) for query in packed]

    def add_label(self, query: int, answer: str, who: str, seconds: int | float) -> int:
        """Add one answer and return its id; see `add_labels`."""
        return self.add_labels([NewLabel(query, answer, who, seconds)])[0]

    def add_labels(self, labels: Iterable[NewLabel]) -> list[int]:
        """Add answers, all or none, and return their ids; they are on disk once this returns.

        Raises:
            UsageError: an answer is not one of `ANSWERS`, or its query is unknown or answered.
            BackflipError: the disk is full; none of these answers is kept.
        """
        labels = list(labels)
        for label in labels:
            _check_label(label)
        with self._transaction() as connection:
            return [_insert_label(connection, label) for label in labels]

    def undo(self, label: int, who: str) -> int:
        """Take an answer back and return the id of the record that says so.

        Raises:
            UsageError: `label` is no answer, or was undone before.
            BackflipError: the disk is full; the answer stands.
        """
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT query FROM effective WHERE id = ?", (label,)
            ).fetchone()
            if row is None:
                raise UsageError(f"label {label} is not an answer in force: it cannot be undone")
            return _insert(
                connection,
                "INSERT INTO labels (query, undoes, who, at, seconds) VALUES (?, ?, ?, ?, 0)",
                (row[0], label, who, _now()),
            )

    def asked(self, seed: int, env_steps: int) -> int:
        """Return how many queries of `seed` show clips recorded when it had taken `env_steps`."""
        rows = self._rows(
            "SELECT count(*) FROM queries q JOIN clips c ON c.id = q.left_clip"
            " WHERE q.seed = ? AND c.env_steps = ?",
            (seed, env_steps),
        )
        return int(rows[0][0])

    def pending(self, seed: int | None = None) -> list[Query]:
        """Return the queries without an answer in force, oldest first, of one seed or of all."""
        rows = self._rows(
            "SELECT q.id, q.seed, c.env_steps, q.asked_at FROM queries q"
            " JOIN clips c ON c.id = q.left_clip"
            " WHERE (? IS NULL OR q.seed = ?)"
            " AND NOT EXISTS (SELECT 1 FROM effective e WHERE e.query = q.id) ORDER BY q.id",
            (seed, seed),
        )
        return [Query(*row) for row in rows]

    def clips(self, query: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return the left and the right clip of `query`.

        Raises:
            UsageError: there is no such query.
            DamagedFile: a clip cannot be decoded.
        """
        rows = self._rows(
            "SELECT l.arrays, r.arrays FROM queries q JOIN clips l ON l.id = q.left_clip"
            " JOIN clips r ON r.id = q.right_clip WHERE q.id = ?",
            (query,),
        )
        if not rows:
            raise UsageError(f"there is no query {query} in `{self.path}`")
        left, right = rows[0]
        return self._unpack(left), self._unpack(right)

    def labelled(self, seed: int, after: int = 0) -> list[LabelledPair]:
        """Return what `seed` can be trained on, in the order of answering.

        `skip` is left out: it says that nothing can be learned from the pair.

        Args:
            seed: whose labels.
            after: only answers given after the label of this id.

        Raises:
            DamagedFile: a clip cannot be decoded.
        """
        rows = self._rows(
            "SELECT q.id, e.id, e.answer, l.arrays, r.arrays, l.env_steps, e.who"
            " FROM effective e JOIN queries q ON q.id = e.query"
            " JOIN clips l ON l.id = q.left_clip JOIN clips r ON r.id = q.right_clip"
            " WHERE q.seed = ? AND e.answer <> 'skip' AND e.id > ? ORDER BY e.id",
            (seed, after),
        )
        return [
            LabelledPair(query, label, answer, self._unpack(left), self._unpack(right), at, who)
            for query, label, answer, left, right, at, who in rows
        ]

    def counts(self, seed: int | None = None) -> Counts:
        """Return how the queries of one seed, or of all, stand."""
        rows = self._rows(
            "SELECT e.answer, count(*) FROM queries q LEFT JOIN effective e ON e.query = q.id"
            " WHERE (? IS NULL OR q.seed = ?) GROUP BY e.answer",
            (seed, seed),
        )
        of: dict[Answer | None, int] = dict(rows)
        answers = [of.get(answer, 0) for answer in ANSWERS]
        return Counts(sum(of.values()), of.get(None, 0), *answers)

    def _rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        with _sqlite_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection, None, None]:
        with _sqlite_errors(self.path), _transaction(self._connection):
            yield self._connection

    def _unpack(self, blob: bytes) -> dict[str, np.ndarray]:
        try:
            return from_safetensors(zlib.decompress(blob))
        except (zlib.error, SafetensorError) as error:
            raise DamagedFile(_damaged(self.path, "a clip cannot be decoded")) from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    # IMMEDIATE: what is checked inside cannot be changed by another process meanwhile.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have rolled it back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file is ours and whole, or empty and to be made ours."""
    # First, before anything is changed in a file that may be somebody else's.
    if not _is_empty(connection):
        _check_ours(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    with _transaction(connection):
        if _is_empty(connection):
            _create(connection)
    _check_ours(connection, path)


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return tables == 0 and _pragma(connection, "user_version") == 0


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables inside the open transaction: a kill leaves all of them or none."""
    statement = ""
    for line in _SCHEMA.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise DamagedFile(f"`{path}` is not a label store of backflip: move it out of the way")
    version = _pragma(connection, "user_version")
    if version != SCHEMA:
        raise DamagedFile(
            f"`{path}` is a label store of version {version}, this backflip reads {SCHEMA}: "
            "use the backflip that wrote it"
        )
    verdict = _pragma(connection, "quick_check(1)")
    if verdict != "ok":
        raise DamagedFile(_damaged(path, str(verdict)))


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@contextmanager
def _sqlite_errors(path: Path) -> Generator[None, None, None]:
    """Turn an SQLite error inside the block into one line that names `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, path) from error
    except UnicodeDecodeError as error:
        # What SQLite says of damage may quote it, and Python cannot always read the quotation.
        raise DamagedFile(_damaged(path, "text in it is not UTF-8")) from error


def _explained(error: sqlite3.Error, path: Path) -> BackflipError:
    # Errors of the module itself (a wrong type bound) have no code. The low byte is the kind.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    match code & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DamagedFile(_damaged(path, str(error)))
        case sqlite3.SQLITE_FULL:
            return BackflipError(disk_full(path))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BackflipError(
                f"another process keeps `{path}` locked (waited {_BUSY_SECONDS:g} s): stop that one"
            )
        case _:
            return BackflipError(f"cannot read or write `{path}`: {error}")


def _damaged(path: Path, what: str) -> str:
    one_line = " ".join(what.split())
    return (
        f"`{path}` is damaged ({one_line}): restore it from a copy, or recover what is left with "
        f"`sqlite3 {path.name} .recover`"
    )


def _check_label(label: NewLabel) -> None:
    if label.answer not in ANSWERS:
        hint = did_you_mean(label.answer, ANSWERS)
        expected = ", ".join(f"`{answer}`" for answer in ANSWERS)
        raise UsageError(f"`{label.answer}` is no answer (expected {expected}){hint}")
    if not (math.isfinite(label.seconds) and label.seconds >= 0):
        raise UsageError(f"`seconds` is {label.seconds}: give how long the answer took, 0 or more")


def _insert_query(
    connection: sqlite3.Connection, seed: int, env_steps: int, left: bytes, right: bytes
) -> int:
    clips = [
        _insert(
            connection,
            "INSERT INTO clips (seed, env_steps, arrays) VALUES (?, ?, ?)",
            (seed, env_steps, clip),
        )
        for clip in (left, right)
    ]
    return _insert(
        connection,
        "INSERT INTO queries (seed, left_clip, right_clip, asked_at) VALUES (?, ?, ?, ?)",
        (seed, *clips, _now()),
    )


def _insert_label(connection: sqlite3.Connection, label: NewLabel) -> int:
    row = connection.execute(
        "SELECT e.answer FROM queries q LEFT JOIN effective e ON e.query = q.id WHERE q.id = ?",
        (label.query,),
    ).fetchone()
    if row is None:
        raise UsageError(f"there is no query {label.query}: it cannot be answered")
    if row[0] is not None:
        raise UsageError(f"query {label.query} is answered (`{row[0]}`): undo that answer first")
    return _insert(
        connection,
        "INSERT INTO labels (query, answer, who, at, seconds) VALUES (?, ?, ?, ?, ?)",
        (label.query, label.answer, label.who, _now(), float(label.seconds)),
    )


def _insert(connection: sqlite3.Connection, statement: str, values: Sequence[object]) -> int:
    return cast("int", connection.execute(statement, values).lastrowid)


def _pack(clip: Clip) -> bytes:
    return zlib.compress(to_safetensors(clip, {}), _COMPRESSION)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
