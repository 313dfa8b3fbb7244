"""The answer source of teachers that are programs. Needs no JAX."""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, final

import numpy as np

from backflip.preferences.answer_source import Doing, QueriedRun
from backflip.preferences.clips import from_arrays
from backflip.preferences.labels import NewLabel
from backflip.preferences.teacher_query import TeacherQuery, shown_clip
from backflip.preferences.teachers import FunctionTeacher, Teacher

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

    def enough(self) -> bool:
        """Return False: nobody ended labelling."""
        return False

    def remaining_seconds(self, queries: int) -> float:
        """Return 0: nothing is answered."""
        return 0.0


@final
class ProgramAnswers:
    """Lets a teacher answer all open queries."""

    def __init__(self, teacher: Teacher, run: QueriedRun) -> None:
        self._teacher, self._run = teacher, run

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Do nothing: a program is not shown any status."""

    def wait_for_labels(self, newest_round: int) -> None:
        """Answer every open query.

        Raises:
            UserFacingError: the teacher failed; its earlier answers are saved.
        """
        for seed in self._run.seeds:
            self._answer(seed)

    def enough(self) -> bool:
        """Return False: a program uses the whole budget."""
        return False

    def remaining_seconds(self, queries: int) -> float:
        """Return 0: the speed of a program is unknown, and most are fast."""
        return 0.0

    def _answer(self, seed: int) -> None:
        """Answer the open queries of one seed; random numbers depend only on the seed."""
        store = self._run.store
        before = store.counts(seed).labels
        answers: list[NewLabel] = []
        written = time.monotonic()
        try:
            for number, query in enumerate(store.pending(seed), before):
                rng = np.random.default_rng([seed, number, ANSWERS])
                answer = self._teacher.answer(self._shown(query.id), rng)
                answers.append(NewLabel(query.id, answer, self._teacher.name, 0.0))
                if time.monotonic() - written > SECONDS_BETWEEN_WRITES:
                    store.add_labels(answers)
                    answers, written = [], time.monotonic()
        finally:
            store.add_labels(answers)

    def _shown(self, query: int) -> TeacherQuery:
        run = self._run
        left, right = (from_arrays(clip) for clip in run.store.clips(query))
        return TeacherQuery(*(shown_clip(clip, run.env, run.drawer) for clip in (left, right)))
