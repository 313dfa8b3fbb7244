"""The label store: clips, queries and answers in one SQLite file. Needs no JAX.

Records are only added. An undo is another record, which refers to the answer that it undoes. When
a method returns, its records are on disk (see `backflip.preferences.label_file`). A query that
repeats another one measures the teacher; it is neither counted nor trained on.
"""

import json
import math
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, final, get_args

import numpy as np

from backflip.core.checkpoint import to_safetensors
from backflip.preferences.films import Film, Which, film_of_json
from backflip.preferences.label_file import LabelFile, insert, now
from backflip.preferences.packed_clips import BadClipError, unpack
from runshelf.errors import UsageError, did_you_mean

Answer = Literal["left", "right", "tie", "skip"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)
# `who` of an answer that says: the demonstration is better. No teacher gave it, so a run's own
# answers of this kind count neither as queries nor as labels of its budget.
DEMONSTRATION = "demonstration"

# Level 1 compresses pixels nearly as well as 6, several times faster.
_COMPRESSION = 1

StoredClip = Mapping[str, np.ndarray]
Films = Mapping[Which, Film]


class NewQuery(NamedTuple):
    """A query to add: two clips of one seed, recorded after `env_steps` of it.

    Attributes:
        films: the films of the left and the right clip, if people answer.
        opinion: the reward model's prediction for the two clips; shown after the answer.
        origin: the run or file of an imported query.
    """

    seed: int
    left: StoredClip
    right: StoredClip
    env_steps: int
    films: tuple[Films, Films] | None = None
    opinion: StoredClip | None = None
    origin: str | None = None


class NewLabel(NamedTuple):
    """An answer to add: its query, its author, and the seconds it took."""

    query: int
    answer: str
    who: str
    seconds: int | float


class AnsweredElsewhere(NamedTuple):
    """A query with its answer: of another run, of a file (`exchange`), or of a demonstration.

    Attributes:
        clips: the left and the right clip, compressed.
        seed: the seed that recorded them.
        env_steps: env steps of that seed when they were recorded.
        answer: one of `ANSWERS`.
        who: who answered.
        at: the time of the answer, as `label_file.now` returns it.
        seconds: seconds that the answer took.
        origin: the run or file that it comes from; None for a demonstration of this run.
        attempts: an identifier of the answer for each seed that gets it; see `add_answered`.
    """

    clips: tuple[bytes, bytes]
    seed: int
    env_steps: int
    answer: Answer
    who: str
    at: str
    seconds: float
    origin: str | None
    attempts: Mapping[int, str]


class Query(NamedTuple):
    """A query in the store; `LabelStore.clips` returns its clips."""

    id: int
    seed: int
    env_steps: int
    asked_at: str


class AnswerInForce(NamedTuple):
    """An answer that can be trained on, its query, and the seed's env steps at the query."""

    query: int
    answer: Answer
    env_steps: int


@final
@dataclass(frozen=True)
class LabelledPair:
    """An answered query with its clips.

    Attributes:
        query: the query's id.
        label: the answer's id; ids increase in the order of answering.
        answer: `left`, `right` or `tie`.
        left: the arrays of the left clip.
        right: the arrays of the right clip.
        env_steps: env steps of the seed when the clips were recorded; 0 if imported.
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
    """Numbers of queries, open queries and answers; undone answers do not count."""

    queries: int
    pending: int
    left: int
    right: int
    tie: int
    skip: int

    @property
    def labels(self) -> int:
        """All answers, including `skip`."""
        return self.left + self.right + self.tie + self.skip


@final
class LabelStore:
    """The labels of one run, made by `open`; a context manager."""

    def __init__(self, file: LabelFile) -> None:
        self.file = file

    @classmethod
    def open(cls, path: Path) -> "LabelStore":
        """Open the store at `path`; create it if missing.

        Raises:
            DamagedFile: the file is damaged, or not a label store of this version.
            UserFacingError: the file cannot be opened, or the disk is full.
        """
        return cls(LabelFile.open(path))

    @classmethod
    def open_existing(cls, path: Path) -> "LabelStore":
        """Open the store of a run that exists.

        Raises:
            DamagedFile: as of `open`, or the file is missing or empty.
            UserFacingError: the file cannot be opened, or the disk is full.
        """
        return cls(LabelFile.open_existing(path))

    def close(self) -> None:
        """Close the file."""
        self.file.close()

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

    def add_query(self, seed: int, left: StoredClip, right: StoredClip, env_steps: int) -> int:
        """Add one query with its two clips and return its id; see `add_queries`."""
        return self.add_queries([NewQuery(seed, left, right, env_steps)])[0]

    def add_queries(self, queries: Iterable[NewQuery]) -> list[int]:
        """Add queries with their clips in one transaction; return their ids in the given order.

        Raises:
            UsageError: a clip has an array that cannot be stored.
            UserFacingError: the disk is full; no query is added.
        """
        # Compress before the transaction begins, because other processes wait during it.
        packed = [(q, packed_clip(q.left), packed_clip(q.right)) for q in queries]
        with self.file.transaction() as connection:
            return [_insert_query(connection, *query) for query in packed]

    def add_label(self, query: int, answer: str, who: str, seconds: int | float) -> int:
        """Add one answer and return its id; see `add_labels`."""
        return self.add_labels([NewLabel(query, answer, who, seconds)])[0]

    def add_labels(self, labels: Iterable[NewLabel]) -> list[int]:
        """Add answers in one transaction and return their ids.

        Raises:
            UsageError: an answer is not one of `ANSWERS`, or its query is unknown or answered.
            UserFacingError: the disk is full; no answer is added.
        """
        labels = list(labels)
        for label in labels:
            _check_label(label)
        with self.file.transaction() as connection:
            return [insert_label(connection, label) for label in labels]

    def add_answered(self, answered: Iterable[AnsweredElsewhere]) -> int:
        """Add answered queries in one transaction; return how many answers are new.

        An answer whose attempt is in the store is left out, even if it was undone later.

        Raises:
            UserFacingError: the disk is full; nothing is added.
        """
        with self.file.transaction() as connection:
            return sum(_insert_answered(connection, one) for one in answered)

    def undo(self, label: int, who: str) -> int:
        """Undo an answer and return the id of the new record.

        Raises:
            UsageError: `label` is not an answer, or it was undone before.
            UserFacingError: the disk is full; the answer is not undone.
        """
        with self.file.transaction() as connection:
            row = connection.execute(
                "SELECT query FROM effective WHERE id = ?", (label,)
            ).fetchone()
            if row is None:
                raise UsageError(f"label {label} is not an answer, or it was undone before")
            return insert(
                connection,
                "INSERT INTO labels (query, undoes, who, at, seconds) VALUES (?, ?, ?, ?, 0)",
                (row[0], label, who, now()),
            )

    def count_queries(self, seed: int, env_steps: int) -> int:
        """Return how many queries of `seed` have clips recorded at exactly `env_steps`.

        Those of demonstrations, which no teacher answers, are left out.
        """
        rows = self.file.rows(
            "SELECT count(*) FROM queries q JOIN clips c ON c.id = q.left_clip"
            " WHERE q.seed = ? AND c.env_steps = ? AND q.repeats IS NULL AND q.origin IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM labels a WHERE a.query = q.id AND a.who = ?)",
            (seed, env_steps, DEMONSTRATION),
        )
        return int(rows[0][0])

    def pending(self, seed: int | None = None) -> list[Query]:
        """Return the open queries of one seed or of all, oldest first."""
        rows = self.file.rows(
            "SELECT q.id, q.seed, c.env_steps, q.asked_at FROM queries q"
            " JOIN clips c ON c.id = q.left_clip"
            " WHERE (? IS NULL OR q.seed = ?) AND q.repeats IS NULL"
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
        rows = self.file.rows(
            "SELECT l.arrays, r.arrays FROM queries q JOIN clips l ON l.id = q.left_clip"
            " JOIN clips r ON r.id = q.right_clip WHERE q.id = ?",
            (query,),
        )
        if not rows:
            raise UsageError(f"there is no query {query} in `{self.file.path}`")
        left, right = rows[0]
        return self._unpack(left), self._unpack(right)

    def clip(self, clip: int) -> dict[str, np.ndarray]:
        """Return one clip.

        Raises:
            UsageError: there is no such clip.
            DamagedFile: it cannot be decoded.
        """
        rows = self.file.rows("SELECT arrays FROM clips WHERE id = ?", (clip,))
        if not rows:
            raise UsageError(f"there is no clip {clip} in `{self.file.path}`")
        return self._unpack(rows[0][0])

    def films(self, query: int) -> tuple[Films, Films]:
        """Return the films of both clips of `query`, without damaged ones; empty if none."""
        rows = self.file.rows(
            "SELECT f.clip = q.left_clip, f.view, f.about FROM queries q"
            " JOIN films f ON f.clip IN (q.left_clip, q.right_clip) WHERE q.id = ? ORDER BY f.id",
            (query,),
        )
        sides: tuple[dict[Which, Film], dict[Which, Film]] = ({}, {})
        for is_left, view, about in rows:
            with suppress(ValueError):
                sides[0 if is_left else 1][view] = film_of_json(about)
        return sides

    def set_films(self, query: int, left: Films, right: Films) -> None:
        """Replace the films of the clips of `query`."""
        with self.file.transaction() as connection:
            clips = connection.execute(
                "SELECT left_clip, right_clip FROM queries WHERE id = ?", (query,)
            ).fetchone()
            for clip, films in zip(clips, (left, right), strict=True):
                insert_films(connection, clip, films)

    def labelled(self, seed: int, after: int = 0) -> list[LabelledPair]:
        """Return the labels that `seed` can be trained on, in the order of answering.

        `skip` is left out, because nothing can be learned from it.

        Args:
            seed: the seed.
            after: return only answers whose label id is larger.

        Raises:
            DamagedFile: a clip cannot be decoded.
        """
        rows = self.file.rows(
            "SELECT q.id, e.id, e.answer, l.arrays, r.arrays,"
            " CASE WHEN q.origin IS NULL THEN l.env_steps ELSE 0 END, e.who"
            " FROM effective e JOIN queries q ON q.id = e.query"
            " JOIN clips l ON l.id = q.left_clip JOIN clips r ON r.id = q.right_clip"
            " WHERE q.seed = ? AND e.answer <> 'skip' AND e.id > ? AND q.repeats IS NULL"
            " ORDER BY e.id",
            (seed, after),
        )
        return [
            LabelledPair(query, label, answer, self._unpack(left), self._unpack(right), at, who)
            for query, label, answer, left, right, at, who in rows
        ]

    def in_force(self, seed: int, env_steps: int) -> list[AnswerInForce]:
        """Return the labels of `labelled`, in the same order, without the clips.

        Args:
            seed: the seed.
            env_steps: leave out queries whose clips were recorded later.
        """
        rows = self.file.rows(
            "SELECT q.id, e.answer, CASE WHEN q.origin IS NULL THEN c.env_steps ELSE 0 END"
            " FROM effective e JOIN queries q ON q.id = e.query JOIN clips c ON c.id = q.left_clip"
            " WHERE q.seed = ? AND e.answer <> 'skip' AND q.repeats IS NULL"
            " AND (q.origin IS NOT NULL OR c.env_steps <= ?) ORDER BY e.id",
            (seed, env_steps),
        )
        return [AnswerInForce(*row) for row in rows]

    def counts(self, seed: int | None = None) -> Counts:
        """Return the numbers of queries and answers of one seed or of all.

        Answers of the run's own demonstrations are left out.
        """
        rows = self.file.rows(
            "SELECT e.answer, count(*) FROM queries q LEFT JOIN effective e ON e.query = q.id"
            " WHERE (? IS NULL OR q.seed = ?) AND q.repeats IS NULL"
            " AND (q.origin IS NOT NULL OR e.who IS NOT ?) GROUP BY e.answer",
            (seed, seed, DEMONSTRATION),
        )
        of: dict[Answer | None, int] = dict(rows)
        answers = [of.get(answer, 0) for answer in ANSWERS]
        return Counts(sum(of.values()), of.get(None, 0), *answers)

    def opinion(self, query: int) -> dict[str, np.ndarray] | None:
        """Return the reward model's prediction for a query's clips; None before the first fit.

        Raises:
            DamagedFile: it cannot be decoded.
        """
        rows = self.file.rows("SELECT opinion FROM queries WHERE id = ?", (query,))
        return self._unpack(rows[0][0]) if rows and rows[0][0] is not None else None

    def imported(self) -> bool:
        """Return whether any query was imported."""
        rows = self.file.rows("SELECT EXISTS (SELECT 1 FROM queries WHERE origin IS NOT NULL)")
        return bool(rows[0][0])

    def newest_record(self, env_steps: int) -> int:
        """Return the id of the newest answer or undo, 0 if there is none.

        Args:
            env_steps: leave out queries whose clips were recorded later.
        """
        rows = self.file.rows(
            "SELECT coalesce(max(a.id), 0) FROM labels a JOIN queries q ON q.id = a.query"
            " JOIN clips c ON c.id = q.left_clip WHERE q.origin IS NOT NULL OR c.env_steps <= ?",
            (env_steps,),
        )
        return int(rows[0][0])

    def _unpack(self, blob: bytes) -> dict[str, np.ndarray]:
        try:
            return unpack(blob).arrays
        except BadClipError as error:
            raise self.file.damaged(f"a clip {error}") from error


def _check_label(label: NewLabel) -> None:
    if label.answer not in ANSWERS:
        hint = did_you_mean(label.answer, ANSWERS)
        expected = ", ".join(f"`{answer}`" for answer in ANSWERS)
        raise UsageError(f"`{label.answer}` is not an answer (expected {expected}){hint}")
    if not (math.isfinite(label.seconds) and label.seconds >= 0):
        raise UsageError(f"`seconds` must be finite and at least 0, got {label.seconds}")


def _insert_query(
    connection: sqlite3.Connection, query: NewQuery, left: bytes, right: bytes
) -> int:
    clips = [insert_clip(connection, query.seed, query.env_steps, clip) for clip in (left, right)]
    for clip, films in zip(clips, query.films or (), strict=False):
        insert_films(connection, clip, films)
    return insert(
        connection,
        "INSERT INTO queries (seed, left_clip, right_clip, asked_at, origin, opinion)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (query.seed, *clips, now(), query.origin, query.opinion and packed_clip(query.opinion)),
    )


def insert_clip(connection: sqlite3.Connection, seed: int, env_steps: int, packed: bytes) -> int:
    """Insert a clip and return its id."""
    return insert(
        connection,
        "INSERT INTO clips (seed, env_steps, arrays) VALUES (?, ?, ?)",
        (seed, env_steps, packed),
    )


def _insert_answered(connection: sqlite3.Connection, one: AnsweredElsewhere) -> int:
    """Insert a query and its answer for every seed that lacks it; return the number of seeds."""
    known = "SELECT 1 FROM labels WHERE attempt = ?"
    new = [
        (seed, attempt)
        for seed, attempt in one.attempts.items()
        if connection.execute(known, (attempt,)).fetchone() is None
    ]
    # One copy of the clips serves all seeds.
    clips = [insert_clip(connection, one.seed, one.env_steps, c) for c in one.clips if new]
    for seed, attempt in new:
        query = insert(
            connection,
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, origin)"
            " VALUES (?, ?, ?, ?, ?)",
            (seed, *clips, one.at, one.origin),
        )
        insert(
            connection,
            "INSERT INTO labels (query, answer, who, at, seconds, attempt)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (query, one.answer, one.who, one.at, one.seconds, attempt),
        )
    return len(new)


def insert_films(connection: sqlite3.Connection, clip: int, films: Films) -> None:
    """Insert the films of a clip."""
    for view, film in films.items():
        insert(
            connection,
            "INSERT INTO films (clip, view, about) VALUES (?, ?, ?)",
            (clip, view, json.dumps(film._asdict())),
        )


def insert_label(connection: sqlite3.Connection, label: NewLabel, at: str | None = None) -> int:
    """Insert an answer, given at this moment or at `at`, and return its id.

    Raises:
        UsageError: its query is unknown or answered.
    """
    row = connection.execute(
        "SELECT e.answer FROM queries q LEFT JOIN effective e ON e.query = q.id WHERE q.id = ?",
        (label.query,),
    ).fetchone()
    if row is None:
        raise UsageError(f"there is no query {label.query}: it cannot be answered")
    if row[0] is not None:
        raise UsageError(f"query {label.query} is answered (`{row[0]}`): undo that answer first")
    return insert(
        connection,
        "INSERT INTO labels (query, answer, who, at, seconds) VALUES (?, ?, ?, ?, ?)",
        (label.query, label.answer, label.who, at or now(), float(label.seconds)),
    )


def mirrored(answer: Answer) -> Answer:
    """Return the equivalent answer for the pair with its sides swapped."""
    mirror: dict[Answer, Answer] = {"left": "right", "right": "left"}
    return mirror.get(answer, answer)


def packed_clip(clip: StoredClip) -> bytes:
    """Return a clip as the label file keeps it."""
    return zlib.compress(to_safetensors(clip, {}), _COMPRESSION)
