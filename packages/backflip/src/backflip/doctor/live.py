"""Reads a log every few seconds while a training run writes it, and reports new findings."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, final

from backflip.doctor.diagnosis import Diagnosis, Measured, diagnose
from backflip.doctor.ends import Ends
from backflip.doctor.log import Log
from backflip.doctor.reading.own_runs import logs_of_run
from runshelf.errors import UserFacingError, one_line
from runshelf.formatting import number
from runshelf.store.diagnosis import write_diagnosis
from runshelf.store.run import open_run

SHARE = 0.01  # of the time that a training run takes, at most, is spent on looking at it
PAUSE = 10.0  # seconds between two looks, at least
FOLLOW_PAUSE = 2.0  # of `follow`
SAY_SECONDS = 30.0  # between two lines about how far a training run is
MOST_STATES = 8
NO_END = (
    "its planned env steps are not known, so what needs a share of them is judged at the end, or "
    "now with --about env_steps=N"
)


@final
class News(NamedTuple):
    """A finding that the look before did not show."""

    log: Log
    found: Measured

    @property
    def in_words(self) -> str:
        """The finding in one line."""
        sign = ">" if self.found.check.bad_side == "above" else "<"
        step = "env step" if self.log.is_over_env_steps else "step"
        return (
            f"doctor: {self.found.check.id}: {self.found.check.title} "
            f"({self.found.check.shown(self.found.value)} {sign} "
            f"{self.found.check.shown(self.found.limit)}), from {step} "
            f"{number(self.found.since)} on, in {self.log.name}"
        )


@final
class Watch:
    """Diagnoses what is logged so far, and tells each finding once.

    Args:
        read: returns the logs as they are now; raises `UserFacingError` if it cannot.
        pause: seconds between two looks, at least.

    Attributes:
        diagnoses: those of the newest look.
    """

    def __init__(self, read: Callable[[], Sequence[Log]], pause: float) -> None:
        self._read, self._pause = read, pause
        self._told = set[tuple[str, str]]()
        self._next = time.monotonic() + pause
        self.diagnoses: list[Diagnosis] = []

    @property
    def is_due(self) -> bool:
        """Whether looking now keeps to the share of the time."""
        return time.monotonic() >= self._next

    def look(self) -> list[News]:
        """Return the findings that are new.

        Raises:
            UserFacingError: the logs cannot be read.
        """
        began = time.monotonic()
        try:
            self.diagnoses = [diagnose(going_on(log)) for log in self._read()]
        finally:
            spent = time.monotonic() - began
            self._next = time.monotonic() + max(self._pause, spent / SHARE)
        news = [News(one.log, found) for one in self.diagnoses for found in one.findings]
        fresh = [one for one in news if (one.log.name, one.found.check.id) not in self._told]
        self._told |= {(one.log.name, one.found.check.id) for one in fresh}
        return fresh

    @property
    def found(self) -> dict[str, int]:
        """The ids of the findings of the newest look, with the number of logs that show each."""
        ids = [seen.check.id for one in self.diagnoses for seen in one.findings]
        return {check: ids.count(check) for check in dict.fromkeys(ids)}


def going_on(log: Log) -> Log:
    """Return a log for a look while the algorithm still trains.

    If the planned env steps are unknown, they are set to infinity, so that no check takes the part
    that is logged for the whole.
    """
    return log if log.planned > 0 else replace(log, planned=math.inf)


@final
class LiveDoctor:
    """Watches a run of ours from within the process that trains it."""

    def __init__(self) -> None:
        self._watches = dict[Path, Watch]()
        self._errors = frozenset[str]()

    def __call__(self, folder: Path) -> tuple[list[str], str]:
        """Return new findings, a line for each, and what the health line says of all of them."""
        if folder not in self._watches:
            self._watches[folder] = Watch(lambda: _seeds_of(folder), PAUSE)
        watch = self._watches[folder]
        news = list[News]()
        if watch.is_due:
            try:
                news = watch.look()
            except UserFacingError:
                return [], ""  # training goes on: it reports damaged files itself
            except Exception as error:  # noqa: BLE001  (no mistake of the doctor ends training)
                return self._failed(error), ""
        if news:
            write_diagnosis(folder, watch.found, "; ".join(one.in_words for one in news))
        return [one.in_words for one in news], _warning(watch.found)

    def _failed(self, error: Exception) -> list[str]:
        """Return a line about an error of a check, once."""
        line = f"doctor: unexpected {one_line(error)}: findings may be missing; training goes on"
        said, self._errors = line in self._errors, self._errors | {line}
        return [] if said else [line]


def _seeds_of(folder: Path) -> list[Log]:
    return [log for log in logs_of_run(open_run(folder)) if log.seed is not None]


def _warning(found: dict[str, int]) -> str:
    return f"DOCTOR {', '.join(found)}" if found else ""


def follow(
    read: Callable[[], Sequence[Log]],
    say: Callable[[str], None],
    until: Callable[[Sequence[Diagnosis]], bool],
) -> None:
    """Look at logs until the training runs end, and say each finding when it is new.

    A log that cannot be read yet is read again later. `Ends` says what counts as an end.

    Args:
        read: returns the logs as they are now.
        say: receives findings, and from time to time how far the training runs are.
        until: whether to stop at these diagnoses.
    """
    watch, last_said, why_waiting = Watch(read, FOLLOW_PAUSE), time.monotonic(), ""
    without_end, ends = set[str](), Ends()
    while True:
        try:
            news = watch.look()
        except UserFacingError as error:
            if str(error) != why_waiting:
                why_waiting = str(error)
                say(f"waiting for a log: {why_waiting}")
            news = []
        for log in (one.log for one in watch.diagnoses):
            if math.isinf(log.planned) and log.name not in without_end:
                without_end.add(log.name)
                say(f"{log.name}: {NO_END}")
        for one in news:
            say(one.in_words)
        if watch.diagnoses and (until(watch.diagnoses) or _are_over(watch.diagnoses, ends, say)):
            return
        if watch.diagnoses and time.monotonic() - last_said >= SAY_SECONDS:
            last_said = time.monotonic()
            say("; ".join(_state_of(one) for one in watch.diagnoses[:MOST_STATES]))
        while not watch.is_due:
            time.sleep(0.2)


def _are_over(found: Sequence[Diagnosis], ends: Ends, say: Callable[[str], None]) -> bool:
    """Return whether all training runs have ended, and say why if their planned steps do not."""
    why = {one.log.name: ends.why_over(one.log) for one in found}
    if None in why.values():
        return False
    for name, reason in why.items():
        if reason:
            say(f"{name}: {reason}")
    return True


def _state_of(one: Diagnosis) -> str:
    return f"{one.log.name}: env step {number(one.log.end)}, {one.verdict.rstrip('.')}"
