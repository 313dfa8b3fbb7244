"""The answer source of people, who answer at a page or in the terminal.

While people answer, the next phase waits for as many answers as `backflip.labelling.pace` wants.
The page and the program in the terminal are processes of their own (`backflip.labelling.processes`)
and share only files with the trainer. No JAX here.
"""

import itertools
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, final

from backflip.labelling.label_queue import LabelQueue, labels_per_minute
from backflip.labelling.pace import may_go_on
from backflip.labelling.processes import InTerminal, Page
from backflip.labelling.status import Status, write_status
from backflip.labelling.terminal_device import has_terminal
from backflip.preferences.answer_source import Doing, QueriedRun
from runshelf.errors import UsageError, UserFacingError

USUAL_LABELS = 150  # of each seed: with 5 % of answers wrong, these are worth 100 right ones
FIRST_SHARE = 4  # training begins when at most 1 / FIRST_SHARE of the first queries is open
LOOK_SECONDS = 0.1  # between two looks at whether answers have come
LOOKS_FOR_FILMS = 10  # films are looked for once in so many looks
PAGE, TERMINAL = f"{__package__}.page", f"{__package__}.terminal"  # run as `python -m`

Where = Literal["human", "terminal"]
WHERE: tuple[Where, ...] = ("human", "terminal")


class LabellingSettings(NamedTuple):
    """How people get to label.

    Attributes:
        host: the address the page listens at.
        port: the port of the page; None for the one it had before, or the first free one.
        invite: (address) -> what to tell the user; called once the page listens.
        overlap: share of pairs that are shown to a second person as well.
        goal: what the person wants to see, in their words; None leaves it as it is.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    invite: Callable[[str], str] = "compare clips at {}".format
    overlap: float = 0.0
    goal: str | None = None


@final
class PeopleSource:
    """The answer source of people.

    Args:
        where: they answer at a page (`human`) or in this process's terminal (`terminal`).
        settings: how they get to label.

    Raises:
        UsageError: the terminal was asked for, and there is none.
    """

    usual_labels = USUAL_LABELS
    needs_films = True

    def __init__(self, where: Where, settings: LabellingSettings) -> None:
        if where == "terminal" and not has_terminal():
            raise UsageError("`--teacher terminal` needs a terminal; try --teacher human")
        self._where, self._settings = where, settings

    @property
    def teacher(self) -> str:
        """`human` or `terminal`."""
        return self._where

    @property
    def config(self) -> Mapping[str, Any]:
        """The share of pairs that two people see."""
        return {"overlap": self._settings.overlap}

    @contextmanager
    def open(self, run: QueriedRun) -> "Generator[PeopleAnswers, None, None]":
        """Run the page or the program in the terminal; invite people."""
        answers = PeopleAnswers(run, self._process(run))
        if self._settings.goal is not None:
            answers.queue.set_goal(self._settings.goal, self._where)
        answers.set_status("setting up")
        with answers.process:
            try:
                if answers.process.address:
                    run.say(self._settings.invite(answers.process.address))
                yield answers
            except BaseException as error:
                with suppress(UserFacingError):  # the first error matters, not that it is not told
                    answers.set_status("stopped", result=str(error) or type(error).__name__)
                raise

    def _process(self, run: QueriedRun) -> Page | InTerminal:
        folder, settings = str(run.folder), self._settings
        if self._where == "terminal":
            return InTerminal(["-m", TERMINAL, folder])
        options = ["--host", settings.host, "--overlap", str(settings.overlap)]
        if settings.port is not None:
            options += ["--port", str(settings.port)]
        return Page(["-m", PAGE, folder, "--parent", *options], run.folder / "page.log")


@final
class PeopleAnswers:
    """The answers of people to the queries of one run.

    Args:
        run: whose queries they answer.
        process: what they answer with.
    """

    def __init__(self, run: QueriedRun, process: Page | InTerminal) -> None:
        self._run, self.process = run, process
        self.queue = LabelQueue(run.store)
        self._status = Status(
            "setting up",
            time.time(),
            env=run.env,
            phases=run.phases,
            budget=run.budget,
            pid=os.getpid(),
        )
        self._went_on: float | None = None
        self._phase_seconds = 0.0

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Write what the trainer is doing; a phase is expected to take as long as the last one."""
        if doing == "learning" and expected_seconds is None:
            expected_seconds = self._phase_seconds or None
        self._status = self._status._replace(
            doing=doing, since=time.time(), expected_seconds=expected_seconds, **facts
        )
        write_status(self._run.folder, self._status)

    def wait_for_labels(self, newest_round: int) -> None:
        """Wait until few enough queries are open for the next phase to begin."""
        self._run.book_time("train")
        if self._went_on is None:  # nothing has been learnt yet: wait for most of the answers
            newest_round //= FIRST_SHARE
        else:
            self._phase_seconds = time.monotonic() - self._went_on
        if not self._may_go_on(newest_round):
            self.set_status("waiting")
        for look in itertools.count():
            self.process.check()
            if look % LOOKS_FOR_FILMS == 0:
                self._run.drawer.redraw_missing(self._run.store)
            if self._may_go_on(newest_round):
                break
            self._run.wait(self._waiting_for())
            time.sleep(LOOK_SECONDS)
        self._run.book_time("answers")
        self._went_on = time.monotonic()

    def remaining_seconds(self, queries: int) -> float:
        """Return how long people will take at their recent pace; 0 if it is not known yet."""
        rate = labels_per_minute(self._run.store)
        return 60.0 * (queries + self._run.store.counts().pending) / rate if rate else 0.0

    def enough(self) -> bool:
        """Return whether somebody said that there are enough labels."""
        return self.queue.said_enough()

    def _may_go_on(self, newest_round: int) -> bool:
        return self.enough() or may_go_on(
            self._run.store.counts().pending,
            newest_round=newest_round,
            phase_seconds=self._phase_seconds,
            per_minute=labels_per_minute(self._run.store),
            people=self.queue.people_lately(),
        )

    def _waiting_for(self) -> str:
        counts, budget = self._run.store.counts(), self._status.budget
        where = f" at {self.process.address}" if self.process.address else ""
        return f"waiting for answers{where}: {counts.labels} of {budget} labels"
