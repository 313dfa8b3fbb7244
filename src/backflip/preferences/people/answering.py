"""How a run's questions get answers: a simulated teacher's at once, people's when they come.

Both are one interface, so that the loop does not know which it has. While people answer, the next
phase waits for as many answers as `backflip.preferences.people.pace` wants.
"""

import itertools
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

import numpy as np

from backflip.core.errors import BackflipError
from backflip.preferences.labels import LabelStore, NewLabel
from backflip.preferences.people.beside import InTerminal, Page
from backflip.preferences.people.desk import Desk, labels_per_minute
from backflip.preferences.people.pace import may_go_on
from backflip.preferences.people.status import Doing, Status, write_status
from backflip.preferences.teachers import People, Teacher
from backflip.training.session import Session

ANSWERS = 1  # sets the teacher's chances apart from those that chose the clips
FIRST_SHARE = 4  # one in so many of the first questions may be open when training begins
LOOK_SECONDS = 0.1  # between two looks whether answers have come
LOOKS_FOR_FILMS = 10  # every so many of them, whether a film has got lost


class DeskSettings(NamedTuple):
    """How people come to the desk.

    Attributes:
        host: the address the page listens at.
        port: of the page; None for the one it had before, or the first free one.
        invite: called with the page's address once it listens; returns what to tell the user.
        overlap: share of pairs that a second person is shown, too.
        goal: what the person wants to see, in their words; None to leave it as it is.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    invite: Callable[[str], str] = "compare clips at {}".format
    overlap: float = 0.0
    goal: str | None = None


@runtime_checkable
class Answering(Protocol):
    """Where answers come from."""

    def open(self) -> AbstractContextManager[None]:
        """Return what lasts as long as answers may come; how it ends is told."""
        ...

    def tell(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Say what the trainer is doing, to those who wait for it."""
        ...

    def attend(self, newest_round: int) -> None:
        """Return once the next phase may begin.

        Args:
            newest_round: how many questions were asked last, of all seeds.
        """
        ...

    def enough(self) -> bool:
        """Return whether no more questions are to be asked."""
        ...

    def seconds_to_go(self, questions: int) -> float:
        """Return how long answering will still take, with so many questions still to be asked."""
        ...


@final
class Simulated:
    """A simulated teacher, who answers whatever is open at once."""

    def __init__(self, teacher: Teacher, store: LabelStore, seeds: Sequence[int]) -> None:
        self._teacher, self._store, self._seeds = teacher, store, seeds

    def open(self) -> AbstractContextManager[None]:
        """Return what does nothing."""
        return nullcontext()

    def tell(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Nobody waits."""

    def attend(self, newest_round: int) -> None:
        """Answer what is open."""
        for seed in self._seeds:
            self._answer(seed)

    def enough(self) -> bool:
        """Return False: the budget is spent."""
        return False

    def seconds_to_go(self, questions: int) -> float:
        """Return 0: answers take no time."""
        return 0.0

    def _answer(self, seed: int) -> None:
        """Let the teacher answer what is open; the chances follow from the seed alone."""
        before = self._store.counts(seed).labels
        answers: list[NewLabel] = []
        for number, query in enumerate(self._store.pending(seed), before):
            left, right = self._store.clips(query.id)
            rng = np.random.default_rng([seed, number, ANSWERS])
            answer = self._teacher.answer(left["reward"], right["reward"], rng)
            answers.append(NewLabel(query.id, answer, self._teacher.name, 0.0))
        self._store.add_labels(answers)


@final
class ByPeople:
    """People, at a page or in a terminal.

    Args:
        people: where they answer.
        session: the run's.
        store: its labels.
        settings: how they come to the desk.
        restore_films: draws again what has got lost.
        facts: of the run, for those who wait (`env`, `phases`, `budget`).
    """

    def __init__(
        self,
        people: People,
        session: Session,
        store: LabelStore,
        settings: DeskSettings,
        restore_films: Callable[[], None],
        facts: Mapping[str, Any],
    ) -> None:
        self._people, self._session, self._store = people, session, store
        self._settings, self._restore_films = settings, restore_films
        self._desk = Desk(store)
        self._status = Status("setting up", time.time(), pid=os.getpid(), **facts)
        self._went_on: float | None = None
        self._phase_seconds = 0.0
        self._beside: Page | InTerminal = self._program()
        if settings.goal is not None:
            self._desk.set_goal(settings.goal, people.name)

    @contextmanager
    def open(self) -> Generator[None, None, None]:
        """Have the page, or the program in the terminal, run meanwhile; invite people."""
        self.tell("setting up")
        with self._beside:
            try:
                self._invite()
                yield
            except BaseException as error:
                with suppress(BackflipError):  # what went wrong matters, not that it is not told
                    self.tell("stopped", result=str(error) or type(error).__name__)
                raise

    def _invite(self) -> None:
        """Say where the page is."""
        if self._beside.address:
            self._session.teller.say(self._settings.invite(self._beside.address))

    def tell(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Say what the trainer is doing; a phase is expected to take as long as the one before."""
        if doing == "learning" and expected_seconds is None:
            expected_seconds = self._phase_seconds or None
        self._status = self._status._replace(
            doing=doing, since=time.time(), expected_seconds=expected_seconds, **facts
        )
        write_status(self._session.folder, self._status)

    def attend(self, newest_round: int) -> None:
        """Wait until so few questions are open that the next phase may begin."""
        self._session.clock.spent("train")
        if self._went_on is None:  # nothing has been learnt yet: wait for most of the answers
            newest_round //= FIRST_SHARE
        else:
            self._phase_seconds = time.monotonic() - self._went_on
        if not self._may_go_on(newest_round):
            self.tell("waiting")
        for look in itertools.count():
            self._beside.check()
            if look % LOOKS_FOR_FILMS == 0:
                self._restore_films()
            if self._may_go_on(newest_round):
                break
            self._session.teller.wait(self._waiting_for())
            time.sleep(LOOK_SECONDS)
        self._session.clock.spent("answers")
        self._went_on = time.monotonic()

    def seconds_to_go(self, questions: int) -> float:
        """Return how long people will take at the pace they had lately; 0 if there is none yet."""
        rate = labels_per_minute(self._store)
        return 60.0 * (questions + self._store.counts().pending) / rate if rate else 0.0

    def enough(self) -> bool:
        """Return whether people have said that there are labels enough."""
        return self._desk.said_enough()

    def _may_go_on(self, newest_round: int) -> bool:
        return self.enough() or may_go_on(
            self._store.counts().pending,
            newest_round=newest_round,
            phase_seconds=self._phase_seconds,
            per_minute=labels_per_minute(self._store),
            people=self._desk.people_lately(),
        )

    def _waiting_for(self) -> str:
        counts, budget = self._store.counts(), self._status.budget
        where = f" at {self._beside.address}" if self._beside.address else ""
        return f"waiting for answers{where}: {counts.labels} of {budget} labels"

    def _program(self) -> Page | InTerminal:
        folder = str(self._session.folder)
        if self._people.name == "terminal":
            return InTerminal(["-m", "backflip.preferences.people.terminal", folder])
        options = ["--host", self._settings.host, "--overlap", str(self._settings.overlap)]
        if self._settings.port is not None:
            options += ["--port", str(self._settings.port)]
        arguments = ["-m", "backflip.web", folder, "--parent", *options]
        return Page(arguments, self._session.folder / "page.log")
