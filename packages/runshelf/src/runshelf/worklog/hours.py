"""Hours of people by stage: planned, started and stopped, and a forecast.

Stages have the names that the user gives them, such as reading, building, debugging and waiting.
The records are lines of `runs/.runshelf/hours.jsonl`; nothing is ever changed there. Times are Unix
seconds, so changes of the clock to summer time and of the time zone do not matter.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.durations import duration
from runshelf.errors import UsageError, did_you_mean
from runshelf.received_json import finite
from runshelf.store.home import HOURS, make_shared_file, shared
from runshelf.store.records import LinesWriter, read_lines
from runshelf.terminal_text import harmless

HOUR = 3600.0
LONGEST = 8 * HOUR  # what a stage counts that ran longer without a word
STAGE = re.compile(r"[^\W\d_][\w .+-]{0,39}")
_FARTHEST = 10_000 * HOUR
_PACE_WEEKS = 4


@final
class Work(NamedTuple):
    """A piece of work.

    Attributes:
        stage: its stage.
        begin: when it began, in Unix seconds.
        seconds: how long it counts.
        passed: how long it took by the clock; it counts less if it ran on overnight.
    """

    stage: str
    begin: float
    seconds: float
    passed: float


@final
class Open(NamedTuple):
    """The stage that is running, since when, and how long it takes already."""

    stage: str
    begin: float
    passed: float

    @property
    def in_words(self) -> str:
        """What is to be decided about it."""
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.begin))
        return (
            f"`{self.stage}` has been running for {duration(self.passed)}, since {since}. Did you "
            f"work all that time? It counts as {duration(LONGEST)} until you say"
        )


@final
class Ledger(NamedTuple):
    """Everything that is known about hours.

    Attributes:
        works: pieces of work, in the order of their records.
        plans: planned seconds by stage.
        done: stages that are finished.
        running: stage and begin of the piece that is not stopped; None without one.
    """

    works: list[Work]
    plans: dict[str, float]
    done: set[str]
    running: tuple[str, float] | None

    @property
    def stages(self) -> list[str]:
        """All stages, in the order in which they were named."""
        names = [*self.plans, *(work.stage for work in self.works)]
        return list(dict.fromkeys([*names, *([self.running[0]] if self.running else [])]))


@final
class StageRow(NamedTuple):
    """One stage: planned, spent and expected seconds. `planned` and `expected` may be unknown."""

    stage: str
    planned: float | None
    spent: float
    expected: float | None
    is_done: bool


@final
class Forecast(NamedTuple):
    """How long all planned stages will take.

    Attributes:
        rows: the stages.
        ratio: spent over planned hours of the finished stages; None without any.
        remaining: seconds of work that are left.
        weekly: mean seconds of work a week, over the last weeks; 0 without any.
    """

    rows: list[StageRow]
    ratio: float | None
    remaining: float
    weekly: float

    @property
    def weeks(self) -> float | None:
        """Weeks until everything is done, at the pace of the last weeks.

        None if less than an hour a week was recorded: that says nothing about the pace.
        """
        return self.remaining / self.weekly if self.weekly >= HOUR else None


def read_ledger(home: Path) -> Ledger:
    """Return everything that is known about the hours of a home.

    Raises:
        UserFacingError: the file cannot be read.
    """
    ledger = Ledger([], {}, set(), None)
    for record in read_lines(shared(home, HOURS)).records:
        ledger = _with(ledger, record)
    return ledger


def start(home: Path, stage: str, now: float) -> list[str]:
    """Start a stage, which stops the one that is running; return what there is to say.

    Raises:
        UsageError: the name is not one of a stage, or the stage is running already.
        UserFacingError: the disk is full.
    """
    _check_stage(stage)
    ledger = read_ledger(home)
    if ledger.running and ledger.running[0] == stage:
        raise UsageError(f"`{stage}` is running already; hours stop ends it")
    said = stop(home, now) if ledger.running else []
    _append(home, {"do": "start", "stage": stage, "time": now})
    return [*said, f"{stage} started"]


def stop(home: Path, now: float, worked: float | None = None) -> list[str]:
    """Stop the stage that is running; return what there is to say.

    Args:
        home: the home.
        now: the time.
        worked: how many seconds count. If no stage is running, they count for the last one.

    Raises:
        UsageError: nothing is running, or less time has passed than was worked.
        UserFacingError: the disk is full.
    """
    ledger = read_ledger(home)
    if not ledger.running and (worked is None or not ledger.works):
        raise UsageError("no stage is running; hours start STAGE begins one")
    stage, begin = ledger.running or ledger.works[-1][:2]
    passed = now - begin if ledger.running else ledger.works[-1].passed
    if worked is not None and worked > max(passed, 0.0) + 60.0:
        raise UsageError(
            f"only {duration(passed)} of `{stage}` have passed, not {duration(worked)}; "
            f"hours add {stage} 2h adds what was not started"
        )
    _append(home, {"do": "stop", "time": now, "worked": worked})
    work = read_ledger(home).works[-1]
    return [f"{stage}: {duration(work.seconds) or '0 s'}", *_remarks(work, worked)]


def plan(home: Path, stage: str, seconds: float) -> None:
    """Plan how long a stage takes.

    Raises:
        UsageError: the name is not one of a stage, or it is too long.
        UserFacingError: the disk is full.
    """
    _check_stage(stage)
    _check_seconds(seconds)
    _append(home, {"do": "plan", "stage": stage, "seconds": seconds})


def add(home: Path, stage: str, seconds: float, now: float) -> None:
    """Add work that was not started and stopped; it ended at `now`.

    Raises:
        UsageError: the name is not one of a stage, or it is too long.
        UserFacingError: the disk is full.
    """
    _check_stage(stage)
    _check_seconds(seconds)
    _append(home, {"do": "add", "stage": stage, "seconds": seconds, "time": now})


def finish(home: Path, stage: str, now: float) -> None:
    """Say that a stage is done, so that it counts for the forecast.

    Raises:
        UsageError: there is no such stage.
        UserFacingError: the disk is full.
    """
    ledger = read_ledger(home)
    if stage not in ledger.stages:
        hint = did_you_mean(stage, ledger.stages)
        raise UsageError(f"no stage `{stage}`{hint}; hours lists the stages")
    if ledger.running and ledger.running[0] == stage:
        stop(home, now)
    _append(home, {"do": "done", "stage": stage})


def open_stage(home: Path, now: float) -> Open | None:
    """Return the stage that is running; None without one.

    Raises:
        UserFacingError: the file cannot be read.
    """
    running = read_ledger(home).running
    return Open(*running, max(0.0, now - running[1])) if running else None


def overlong_stage(home: Path, now: float) -> Open | None:
    """Return the stage that is running if it was probably left running; None otherwise.

    Raises:
        UserFacingError: the file cannot be read.
    """
    found = open_stage(home, now)
    return found if found and found.passed > LONGEST else None


def works_until(ledger: Ledger, now: float) -> list[Work]:
    """Return the pieces of work, with the one that is running as if it were stopped now."""
    if not ledger.running:
        return ledger.works
    return [*ledger.works, _work(*ledger.running, now, None)]


def seconds_between(works: Iterable[Work], since: float, until: float) -> dict[str, float]:
    """Return the seconds of each stage that fall into a span of time."""
    found: dict[str, float] = {}
    for work in works:
        within = min(work.begin + work.seconds, until) - max(work.begin, since)
        if within > 0:
            found[work.stage] = found.get(work.stage, 0.0) + within
    return found


def forecast(ledger: Ledger, now: float) -> Forecast:
    """Return how long the stages will take.

        r = Σ_done spent / Σ_done planned
        expected_i = spent_i if done, else max(spent_i, r planned_i)

    The sums are over finished stages that were planned. Without any, r is 1.
    """
    works = works_until(ledger, now)
    spent = seconds_between(works, 0.0, math.inf)
    done = [s for s in ledger.plans if s in ledger.done and ledger.plans[s] > 0]
    planned = sum(ledger.plans[stage] for stage in done)
    ratio = sum(spent.get(stage, 0.0) for stage in done) / planned if planned else None
    rows = [_row(stage, ledger, spent.get(stage, 0.0), ratio or 1.0) for stage in ledger.stages]
    left = sum((row.expected or row.spent) - row.spent for row in rows if not row.is_done)
    return Forecast(rows, ratio, left, _weekly(works, now))


def _row(stage: str, ledger: Ledger, spent: float, ratio: float) -> StageRow:
    planned, is_done = ledger.plans.get(stage), stage in ledger.done
    expected = spent if is_done else None if planned is None else max(spent, ratio * planned)
    return StageRow(stage, planned, spent, expected, is_done)


def _weekly(works: Sequence[Work], now: float) -> float:
    week = 7 * 24 * HOUR
    first = min((work.begin for work in works), default=now)
    weeks = min(_PACE_WEEKS, max(1.0, (now - first) / week))
    return sum(seconds_between(works, now - weeks * week, now).values()) / weeks


def _with(ledger: Ledger, record: Mapping[str, Any]) -> Ledger:
    """Return a ledger with one more record, which may be damaged."""
    stage, at, seconds = (
        record.get("stage"),
        finite(record.get("time")),
        finite(record.get("seconds")),
    )
    match record.get("do"):
        case "start" if isinstance(stage, str) and at is not None:
            return ledger._replace(running=(stage, at))
        case "stop" if at is not None and ledger.running:
            work = _work(*ledger.running, at, finite(record.get("worked")))
            return ledger._replace(works=[*ledger.works, work], running=None)
        case "stop" if ledger.works and (worked := finite(record.get("worked"))) is not None:
            last = ledger.works[-1]._replace(seconds=max(0.0, worked))
            return ledger._replace(works=[*ledger.works[:-1], last])
        case "add" if isinstance(stage, str) and at is not None and seconds is not None:
            work = Work(stage, at - seconds, max(0.0, seconds), seconds)
            return ledger._replace(works=[*ledger.works, work])
        case "plan" if isinstance(stage, str) and seconds is not None:
            return ledger._replace(plans=ledger.plans | {stage: max(0.0, seconds)})
        case "done" if isinstance(stage, str):
            return ledger._replace(done=ledger.done | {stage})
        case _:
            return ledger


def _work(stage: str, begin: float, end: float, worked: float | None) -> Work:
    """Return a piece of work; 0 seconds if the clock was set back, at most `LONGEST`."""
    passed = max(0.0, end - begin)
    return Work(stage, begin, min(passed, LONGEST) if worked is None else max(0.0, worked), passed)


def _remarks(work: Work, worked: float | None) -> list[str]:
    if worked is None and work.passed > LONGEST:
        return [
            f"{duration(work.passed)} passed, more than a day of work: {duration(LONGEST)} count; "
            "hours stop --worked 3h corrects this"
        ]
    if worked is None and work.passed == 0:
        return ["the clock was set back meanwhile: nothing counts; hours add STAGE 2h adds it"]
    return []


def _check_stage(stage: str) -> None:
    if not STAGE.fullmatch(stage):
        raise UsageError(
            f"`{harmless(stage)[:60]}` is not a name of a stage: letters first, then letters, "
            "digits, spaces, `.`, `+` and `-`, at most 40; try building or debugging"
        )


def _check_seconds(seconds: float) -> None:
    if not 0.0 < seconds <= _FARTHEST:
        raise UsageError(f"at most {_FARTHEST / HOUR:,.0f} hours, got {seconds / HOUR:,.0f}")


def _append(home: Path, record: Mapping[str, Any]) -> None:
    with LinesWriter(make_shared_file(home, HOURS)) as file:
        file.write(record)
        file.sync()
