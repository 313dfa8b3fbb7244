"""The answer source for people, who answer on a page or in the terminal.

The next phase starts when `backflip.labelling.pace` allows it. The page and the terminal program
are separate processes (`backflip.labelling.processes`) and share only files with the trainer.
"""

import itertools
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.needed_labels import (
    FIRST_SHARE,
    needed_labels,
    newest_round_at,
    next_phase,
)
from backflip.labelling.pace import open_pairs_allowed, pairs_to_stay_busy
from backflip.labelling.people_input import checked_goal
from backflip.labelling.processes import NO_TERMINAL, PageProcess, TerminalProcess
from backflip.labelling.status import read_status, write_status
from backflip.labelling.tally import labels_per_minute, labels_per_minute_without_waiting
from backflip.labelling.terminal.device import has_terminal
from backflip.preferences.answer_source import Doing, QueriedRun
from backflip.preferences.films import Film
from runshelf.errors import UsageError, UserFacingError

USUAL_LABELS = 150  # per seed: with 5 % wrong answers, as good as 100 correct ones
POLL_SECONDS = 0.1  # between two checks for answers
POLLS_PER_FILM_CHECK = 10  # every tenth check also restores missing films
PAGE, TERMINAL = f"{__package__}.page", f"{__package__}.terminal"  # run as `python -m`

Where = Literal["human", "terminal"]
WHERE: tuple[Where, ...] = ("human", "terminal")
FilmOf = Callable[[Path], Film | None]  # run folder -> film of the run's newest policy


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
        film_of: draws the film that the page shows at the end; None shows none.

    Raises:
        UsageError: `where` is `terminal` and this process has none, or the goal is too long.
    """

    usual_labels = USUAL_LABELS
    needs_films = True
    shows_clips = True

    def __init__(
        self, where: Where, settings: LabellingSettings, film_of: FilmOf | None = None
    ) -> None:
        if where == "terminal" and not has_terminal():
            raise UsageError(NO_TERMINAL)
        if settings.goal is not None:  # before there is a run
            checked_goal(settings.goal)
        self._where, self._settings, self._film_of = where, settings, film_of

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
        answers = PeopleAnswers(run, self._process(run), self._film_of)
        if self._settings.goal is not None:
            answers.queue.set_goal(self._settings.goal, self._where)
        answers.set_status("setting up")
        with answers.process:
            try:
                if answers.process.address:
                    run.say(self._settings.invite(answers.process.shown))
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
        film_of: draws the film of the final policy.
    """

    def __init__(
        self,
        run: QueriedRun,
        process: PageProcess | TerminalProcess,
        film_of: FilmOf | None = None,
    ) -> None:
        self._run, self.process, self._film_of = run, process, film_of
        self.queue = LabelQueue(run.store)
        # What a resumed run has reached stays on the page until the checkpoint is read.
        self._status = read_status(run.folder)._replace(
            env=run.env,
            phases=run.phases,
            budget=run.budget,
            pid=os.getpid(),
            result="",
            film=None,
        )
        self._phase_started: float | None = None
        self._phase_seconds = 0.0

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Write the trainer's status. A phase is expected to take as long as the last one."""
        if doing == "learning" and expected_seconds is None:
            expected_seconds = self._status.phase_seconds
        self._status = self._status._replace(
            doing=doing, since=time.time(), expected_seconds=expected_seconds, **facts
        )
        if doing in ("finished", "stopped"):
            self.process.let_end()
        self._write_status()
        if doing == "evaluating" and self.process.address:  # the page loads it before the run ends
            self._status = self._status._replace(film=self._film())
            self._write_status()

    def wait_for_labels(self, newest_round: int) -> None:
        """Wait until few enough queries are open for the next phase to start."""
        self._run.book_time("train")
        if self._phase_started is None:  # before the first phase, wait for most of the answers
            newest_round //= FIRST_SHARE
        else:
            self._phase_seconds = time.monotonic() - self._phase_started
            self._status = self._status._replace(phase_seconds=self._phase_seconds)
        if not self._may_start_phase(newest_round):
            self.set_status("waiting")
        for poll in itertools.count():
            self.process.check()
            if poll % POLLS_PER_FILM_CHECK == 0:
                self._run.drawer.redraw_missing(self._run.store)
                self._write_status()  # the number of needed labels follows the rate
            if self._may_start_phase(newest_round):
                break
            self._run.wait(self._waiting_for())
            time.sleep(POLL_SECONDS)
        self._run.book_time("answers")
        self._phase_started = time.monotonic()
        learned = self._run.store.counts().labels
        self._status = self._status._replace(learned_labels=learned)

    def queries_wanted(self) -> int:
        """Return the queries that people lack to be busy until the end of the next phase.

        It is 0 while the length of a phase is unknown, or nobody is present.
        """
        people = self.queue.active_people()
        if self._phase_started is None or not people:
            return 0
        self._phase_seconds = time.monotonic() - self._phase_started
        needed = pairs_to_stay_busy(
            phase_seconds=self._phase_seconds,
            per_minute=labels_per_minute_without_waiting(self._run.store),
            people=people,
        )
        return max(0, needed - self._run.store.counts().pending)

    def remaining_seconds(self, queries: int) -> float:
        """Return how long the answers will take at the recent rate; 0 if the rate is unknown."""
        rate = labels_per_minute(self._run.store)
        return 60.0 * (queries + self._run.store.counts().pending) / rate if rate else 0.0

    def enough(self) -> bool:
        """Return whether a person finished labelling."""
        return self.queue.labelling_finished()

    def _may_start_phase(self, newest_round: int) -> bool:
        open_pairs = self._run.store.counts().pending
        return self.enough() or open_pairs <= self._allowed(newest_round)

    def _allowed(self, newest_round: int) -> int:
        """Return how many pairs may be open when the next phase starts."""
        return open_pairs_allowed(
            newest_round,
            phase_seconds=self._phase_seconds,
            per_minute=labels_per_minute(self._run.store),
            people=self.queue.active_people(),
        )

    def _write_status(self) -> None:
        """Write the status with the number of labels that the next phase needs."""
        needed, phase = None, next_phase(self._status)
        if phase is not None:
            first = self._phase_started is None
            allowed = self._allowed(newest_round_at(self._run, phase, first=first))
            needed = needed_labels(self._run, self._status, allowed)
        self._status = self._status._replace(needed_labels=needed)
        if read_status(self._run.folder) != self._status:
            write_status(self._run.folder, self._status)

    def _film(self) -> Film | None:
        """Return the film of the final policy; None if it cannot be drawn on this machine."""
        if self._film_of is None:
            return None
        with suppress(UserFacingError):
            return self._film_of(self._run.folder)
        return None

    def _waiting_for(self) -> str:
        counts, budget = self._run.store.counts(), self._status.budget
        where = f" at {self.process.address}" if self.process.address else ""
        return f"waiting for answers{where}: {counts.labels} of {budget} labels"
