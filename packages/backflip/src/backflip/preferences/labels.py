"""The label store: clips, queries and answers in one SQLite file. Needs no JAX.

Records are only added. An undo is another record, which refers to the answer that it undoes. When
a method returns, its records are on disk (see `backflip.preferences.label_file`). A query that
repeats another one measures the teacher; it is neither counted nor trained on.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import final

import numpy as np

from backflip.preferences.films import Film, Which, film_of_json
from backflip.preferences.label_file import LabelFile, insert
from backflip.preferences.label_inserts import (
    check_label,
    insert_answered,
    insert_films,
    insert_label,
    insert_query,
    packed_clip,
)
from backflip.preferences.label_records import (
    ANSWERS,
    DEMONSTRATION,
    Answer,
    AnsweredElsewhere,
    AnswerInForce,
    Counts,
    Films,
    LabelledPair,
    NewLabel,
    NewQuery,
    Query,
    StoredClip,
)
from backflip.preferences.packed_clips import BadClipError, unpack
from runshelf.errors import UsageError
from runshelf.store.times import now


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
            return [insert_query(connection, *query) for query in packed]

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
            check_label(label)
        with self.file.transaction() as connection:
            return [insert_label(connection, label) for label in labels]

    def add_answered(self, answered: Iterable[AnsweredElsewhere]) -> int:
        """Add answered queries in one transaction; return how many answers are new.

        An answer whose attempt is in the store is left out, even if it was undone later.

        Raises:
            UserFacingError: the disk is full; nothing is added.
        """
        with self.file.transaction() as connection:
            return sum(insert_answered(connection, one) for one in answered)

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

    def count_records(self, env_steps: int) -> int:
        """Return how many answers and undos there are; they grow with every change.

        The newest id does not: people may answer a later query first, whose clips a fit leaves out.

        Args:
            env_steps: leave out queries whose clips were recorded later.
        """
        rows = self.file.rows(
            "SELECT count(*) FROM labels a JOIN queries q ON q.id = a.query"
            " JOIN clips c ON c.id = q.left_clip WHERE q.origin IS NOT NULL OR c.env_steps <= ?",
            (env_steps,),
        )
        return int(rows[0][0])

    def _unpack(self, blob: bytes) -> dict[str, np.ndarray]:
        try:
            return unpack(blob).arrays
        except BadClipError as error:
            raise self.file.damaged(f"a clip {error}") from error
