"""The answer source for people, who answer on a page or in the terminal.

The next phase starts when `backflip.labelling.pace` allows it. The page and the terminal program
are separate processes (`backflip.labelling.processes`) and share only files with the trainer.
"""

import itertools
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, final

from backflip.labelling.label_queue import LabelQueue, labels_per_minute
from backflip.labelling.pace import may_start_phase
from backflip.labelling.processes import NO_TERMINAL, PageProcess, TerminalProcess
from backflip.labelling.status import Status, write_status
from backflip.labelling.terminal_device import has_terminal
from backflip.preferences.answer_source import Doing, QueriedRun
from runshelf.errors import UsageError, UserFacingError

USUAL_LABELS = 150  # per seed: with 5 % wrong answers, as good as 100 correct ones
FIRST_SHARE = 4  # training starts when at most 1 / FIRST_SHARE of the first queries is open
POLL_SECONDS = 0.1  # between two checks for answers
POLLS_PER_FILM_CHECK = 10  # every tenth check also restores missing films
PAGE, TERMINAL = f"{__package__}.page", f"{__package__}.terminal"  # run as `python -m`

Where = Literal["human", "terminal"]
WHERE: tuple[Where, ...] = ("human", "terminal")


class LabellingSettings(NamedTuple):
    """Settings of labelling by people.

    Attributes:
        host: the address on which the page listens.
        port: the page's port; None for the run's last port, else the first free one.
        invite: (address) -> message for the user; called when the page listens.
        overlap: share of pairs that a second person also sees.
        goal: the goal in the person's words; None keeps the stored one.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    invite: Callable[[str], str] = "compare clips at {}".format
    overlap: float = 0.0
    goal: str | None = None


@final
class PeopleSource:
    """The answer source for people.

    Args:
        where: `human` for the page, `terminal` for this process's terminal.
        settings: settings of labelling.

    Raises:
        UsageError: `where` is `terminal` and this process has none.
    """

    usual_labels = USUAL_LABELS
    needs_films = True

    def __init__(self, where: Where, settings: LabellingSettings) -> None:
        if where == "terminal" and not has_terminal():
            raise UsageError(NO_TERMINAL)
        self._where, self._settings = where, settings

    @property
    def teacher(self) -> str:
        """`human` or `terminal`."""
        return self._where

    @property
    def config(self) -> Mapping[str, Any]:
        """The share of pairs that two people see; part of the run's configuration."""
        return {"overlap": self._settings.overlap}

    @contextmanager
    def open(self, run: QueriedRun) -> "Generator[PeopleAnswers, None, None]":
        """Run the page or the terminal program, and tell the user the page's address."""
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
                with suppress(UserFacingError):  # a failed write must not hide the first error
                    answers.set_status("stopped", result=str(error) or type(error).__name__)
                raise

    def _process(self, run: QueriedRun) -> PageProcess | TerminalProcess:
        folder, settings = str(run.folder), self._settings
        if self._where == "terminal":
            return TerminalProcess(["-m", TERMINAL, folder])
        options = ["--host", settings.host, "--overlap", str(settings.overlap)]
        if settings.port is not None:
            options += ["--port", str(settings.port)]
        return PageProcess(["-m", PAGE, folder, "--parent", *options], run.folder / "page.log")


@final
class PeopleAnswers:
    """The answers of people to the queries of one run.

    Args:
        run: the run.
        process: the page or the terminal program.
    """

    def __init__(self, run: QueriedRun, process: PageProcess | TerminalProcess) -> None:
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
        self._phase_started: float | None = None
        self._phase_seconds = 0.0

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Write the trainer's status. A phase is expected to take as long as the last one."""
        if doing == "learning" and expected_seconds is None:
            expected_seconds = self._phase_seconds or None
        self._status = self._status._replace(
            doing=doing, since=time.time(), expected_seconds=expected_seconds, **facts
        )
        if doing in ("finished", "stopped"):
            self.process.let_end()
        write_status(self._run.folder, self._status)

    def wait_for_labels(self, newest_round: int) -> None:
        """Wait until few enough queries are open for the next phase to start."""
        self._run.book_time("train")
        if self._phase_started is None:  # before the first phase, wait for most of the answers
            newest_round //= FIRST_SHARE
        else:
            self._phase_seconds = time.monotonic() - self._phase_started
        if not self._may_start_phase(newest_round):
            self.set_status("waiting")
        for poll in itertools.count():
            self.process.check()
            if poll % POLLS_PER_FILM_CHECK == 0:
                self._run.drawer.redraw_missing(self._run.store)
            if self._may_start_phase(newest_round):
                break
            self._run.wait(self._waiting_for())
            time.sleep(POLL_SECONDS)
        self._run.book_time("answers")
        self._phase_started = time.monotonic()

    def remaining_seconds(self, queries: int) -> float:
        """Return how long the answers will take at the recent rate; 0 if the rate is unknown."""
        rate = labels_per_minute(self._run.store)
        return 60.0 * (queries + self._run.store.counts().pending) / rate if rate else 0.0

    def enough(self) -> bool:
        """Return whether a person finished labelling."""
        return self.queue.labelling_finished()

    def _may_start_phase(self, newest_round: int) -> bool:
        return self.enough() or may_start_phase(
            self._run.store.counts().pending,
            newest_round=newest_round,
            phase_seconds=self._phase_seconds,
            per_minute=labels_per_minute(self._run.store),
            people=self.queue.active_people(),
        )

    def _waiting_for(self) -> str:
        counts, budget = self._run.store.counts(), self._status.budget
        where = f" at {self.process.address}" if self.process.address else ""
        return f"waiting for answers{where}: {counts.labels} of {budget} labels"
