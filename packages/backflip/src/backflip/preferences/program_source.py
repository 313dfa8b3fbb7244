"""The answer source of teachers that are programs. Needs no JAX."""

import math
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, final

import numpy as np

from backflip.preferences.answer_source import Doing, QueriedRun
from backflip.preferences.clip_sets import ClipSet, answer_set, open_sets
from backflip.preferences.clips import from_arrays
from backflip.preferences.label_records import NewLabel
from backflip.preferences.teacher_query import ShownClip, TeacherQuery, shown_clip
from backflip.preferences.teachers import FunctionTeacher, SetTeacher, Teacher
from runshelf.errors import UserFacingError

USUAL_LABELS = 100  # of each seed
ANSWERS = 1  # separates the teacher's random numbers from those that choose clips
SECONDS_BETWEEN_WRITES = 1.0  # at most this much work of a slow teacher can be lost


@final
class ProgramSource:
    """The answer source of one teacher: `oracle`, `noisy`, or a function of the user."""

    usual_labels = USUAL_LABELS
    needs_films = False

    def __init__(self, teacher: Teacher) -> None:
        self._teacher = teacher

    @property
    def teacher(self) -> str:
        """The teacher's name."""
        return self._teacher.name

    @property
    def shows_clips(self) -> bool:
        """Whether the teacher is a function of the user, which may ask for frames."""
        return isinstance(self._teacher, FunctionTeacher)

    @property
    def config(self) -> Mapping[str, Any]:
        """Empty: the teacher's name has all settings."""
        return {}

    @contextmanager
    def open(self, run: QueriedRun) -> "Generator[ProgramAnswers, None, None]":
        """Yield the answers."""
        yield ProgramAnswers(self._teacher, run)


@final
class NoTeacher:
    """The answer source of runs that make no queries."""

    teacher = "nobody"
    usual_labels = 0
    config: Mapping[str, Any] = MappingProxyType({})
    needs_films = False
    shows_clips = False

    @contextmanager
    def open(self, run: QueriedRun) -> "Generator[NoAnswers, None, None]":
        """Yield the empty answers."""
        yield NoAnswers()


@final
class NoAnswers:
    """Leaves every query open."""

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Do nothing."""

    def wait_for_labels(self, newest_round: int) -> None:
        """Do nothing."""

    def queries_wanted(self) -> int:
        """Return 0: nothing is answered."""
        return 0

    def enough(self) -> bool:
        """Return False: labelling was not ended."""
        return False

    def remaining_seconds(self, queries: int) -> float:
        """Return 0: nothing is answered."""
        return 0.0


@final
class ProgramAnswers:
    """Lets a teacher answer all open queries."""

    def __init__(self, teacher: Teacher, run: QueriedRun) -> None:
        self._teacher, self._run = teacher, run
        self._told = -math.inf  # when the progress last said what is waited for
        self._seconds, self._answered = 0.0, 0  # of this process

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Do nothing: a program is not shown any status."""

    def wait_for_labels(self, newest_round: int) -> None:
        """Answer every open query.

        Raises:
            UserFacingError: the teacher failed; its earlier answers are saved.
        """
        self._run.book_time("train")
        began, before = time.monotonic(), self._run.store.counts().labels
        for seed in self._run.seeds:
            self._answer_sets(seed)
            self._answer(seed)
        self._seconds += time.monotonic() - began
        self._answered += self._run.store.counts().labels - before
        self._run.book_time("answers")

    def queries_wanted(self) -> int:
        """Return 0: a program does not wait for queries."""
        return 0

    def enough(self) -> bool:
        """Return False: a program uses the whole budget."""
        return False

    def remaining_seconds(self, queries: int) -> float:
        """Return how long the answers will take at the mean speed so far; 0 before the first."""
        return queries * self._seconds / self._answered if self._answered else 0.0

    def _answer_sets(self, seed: int) -> None:
        """Rank or rate the open sets of one seed; random numbers depend only on the seed."""
        store = self._run.store
        number = store.counts(seed).labels
        for one in open_sets(store, seed):
            self._tell()
            rng = np.random.default_rng([seed, number, ANSWERS])
            scores = dict(zip(one.clips, self._scores(one, rng), strict=True))
            number += answer_set(store, one, scores, self._teacher.name)

    def _scores(self, one: ClipSet, rng: np.random.Generator) -> Sequence[float | None]:
        """Return what the teacher says about each clip of a set.

        Raises:
            UserFacingError: the teacher only compares, or it failed.
        """
        teacher = self._teacher
        if not isinstance(teacher, SetTeacher):
            raise UserFacingError(f"the teacher `{teacher.name}` cannot {one.ask} clips")
        clips = [self._shown_clip(self._run.store.clip(clip)) for clip in one.clips]
        if one.ask == "rank":
            return teacher.rank(clips, rng)
        return [teacher.rate(clip, rng) for clip in clips]

    def _answer(self, seed: int) -> None:
        """Answer the open queries of one seed; random numbers depend only on the seed."""
        store = self._run.store
        before = store.counts(seed).labels
        answers: list[NewLabel] = []
        written = time.monotonic()
        try:
            for number, query in enumerate(store.pending(seed), before):
                self._tell(len(answers))
                rng = np.random.default_rng([seed, number, ANSWERS])
                answer = self._teacher.answer(self._shown(query.id), rng)
                answers.append(NewLabel(query.id, answer, self._teacher.name, 0.0))
                if time.monotonic() - written > SECONDS_BETWEEN_WRITES:
                    store.add_labels(answers)
                    answers, written = [], time.monotonic()
        finally:
            store.add_labels(answers)

    def _tell(self, unwritten: int = 0) -> None:
        """Say that a function of the user is waited for: it may be slow. At most once a second.

        Args:
            unwritten: answers that are not in the store yet.
        """
        moment = time.monotonic()
        if isinstance(self._teacher, FunctionTeacher) and moment - self._told >= 1.0:
            self._told, labels = moment, self._run.store.counts().labels + unwritten
            self._run.wait(
                f"waiting for the teacher `{self._teacher.name}`: {labels} of {self._run.budget} "
                "labels"
            )

    def _shown(self, query: int) -> TeacherQuery:
        return TeacherQuery(*map(self._shown_clip, self._run.store.clips(query)))

    def _shown_clip(self, clip: Mapping[str, np.ndarray]) -> ShownClip:
        return shown_clip(from_arrays(clip), self._run.env, self._run.drawer)
