"""Premortems: what a person expects of a run before it ends, and what came true.

They are lines of `premortem.jsonl` in the run's folder; nothing is ever changed there. The newest
prediction counts. One that was written after the run's end is kept, but is not a forecast.

Source: Matthew Rahtz, "Lessons Learned Reproducing a Deep Reinforcement Learning Paper", 2018,
footnote 2. Brier, Monthly Weather Review 78, 1950.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import UsageError, UserFacingError
from runshelf.received_json import finite, list_of
from runshelf.store.finding import list_runs
from runshelf.store.records import LinesWriter, read_lines
from runshelf.store.run import Run, open_run
from runshelf.store.state import state_of
from runshelf.store.times import seconds_of

FILE = "premortem.jsonl"
LONGEST = 500  # characters of what may go wrong
MOST_RISKS = 100


@final
class Risk(NamedTuple):
    """What may go wrong, and its probability."""

    text: str
    probability: float


@final
class Premortem(NamedTuple):
    """What was expected of a run, and what came true.

    Attributes:
        run: the short form of the run's id.
        time: when it was written, in Unix seconds.
        failure: the probability that the run fails: 1 minus how surprising that would be.
        risks: what may go wrong.
        is_late: whether the run was over already, so that it is not a forecast.
        has_outcome: whether the outcome is known.
        failed: whether the run failed, if that is known.
        came_true: what went wrong, as in `risks`, and what was not expected.
    """

    run: str
    time: float
    failure: float
    risks: tuple[Risk, ...] = ()
    is_late: bool = False
    has_outcome: bool = False
    failed: bool = False
    came_true: tuple[str, ...] = ()

    @property
    def is_scored(self) -> bool:
        """Whether it is a forecast whose outcome is known."""
        return self.has_outcome and not self.is_late


def write_premortem(run: Run, surprise: float, risks: Sequence[Risk] = ()) -> Premortem:
    """Write what is expected of a run, and return it.

    Args:
        run: the run.
        surprise: how surprising a failure would be, from 0 to 1.
        risks: what may go wrong, each with its probability.

    Raises:
        UsageError: a number is not a probability, or a text is empty, too long or given twice.
        UserFacingError: the disk is full.
    """
    for what, share in [("the surprise", surprise), *((f"`{r.text}`", r[1]) for r in risks)]:
        if not 0.0 <= share <= 1.0:
            raise UsageError(f"{what} must be from 0 % to 100 %, got {share:.4g}")
    texts = [risk.text.casefold() for risk in risks]
    _check_texts(texts)
    is_late = state_of(run).name != "running"
    now = time.time()
    fields = {
        "time": now,
        "surprise": surprise,
        "risks": [risk._asdict() for risk in risks],
        "late": is_late,
    }
    _append(run, {"premortem": fields})
    return Premortem(run.short, now, 1.0 - surprise, tuple(risks), is_late)


def write_outcome(run: Run, *, failed: bool, came_true: Sequence[str] = ()) -> Premortem:
    """Write what came true of a premortem, and return it.

    Raises:
        UsageError: there is no premortem, or a text is empty, too long or given twice.
        UserFacingError: the disk is full.
    """
    if read_premortem(run) is None:
        raise UsageError(
            f"run `{run.short}` has no premortem: an outcome without a prediction says nothing"
        )
    _check_texts([text.casefold() for text in came_true])
    _append(run, {"outcome": {"time": time.time(), "failed": failed, "came_true": list(came_true)}})
    found = read_premortem(run)
    assert found is not None
    return found


def read_premortem(run: Run) -> Premortem | None:
    """Return the newest premortem of a run with its newest outcome; None without one.

    Raises:
        UserFacingError: the file cannot be read.
    """
    found: Premortem | None = None
    for record in read_lines(run.folder / FILE).records:
        if isinstance(fields := record.get("premortem"), dict):
            found = _premortem(run, fields) or found
        if found and isinstance(fields := record.get("outcome"), dict):
            texts = [text for text in list_of(fields.get("came_true")) if isinstance(text, str)]
            failed = fields.get("failed") is True
            found = found._replace(has_outcome=True, failed=failed, came_true=tuple(texts))
    return found


def all_premortems(home: Path) -> list[Premortem]:
    """Return the premortems of all runs of a home, oldest first; unreadable ones are left out."""
    found: list[Premortem] = []
    for ulid in list_runs(home):
        folder = home / "runs" / ulid
        if (folder / FILE).is_file():
            with suppress(UserFacingError):
                premortem = read_premortem(open_run(folder))
                found += [premortem] if premortem else []
    return sorted(found, key=lambda one: one.time)


def brier_score(forecasts: Sequence[tuple[float, bool]]) -> float | None:
    """Return the Brier score of forecasts: 0 is perfect, always saying 50 % gives 0.25.

        B = 1/n Σ_i (p_i - o_i)²

    Args:
        forecasts: probabilities p_i, and whether it happened (o_i = 1) or not (o_i = 0).

    Returns:
        B; None without forecasts.
    """
    if not forecasts:
        return None
    return sum((p - happened) ** 2 for p, happened in forecasts) / len(forecasts)


def failure_forecasts(premortems: Sequence[Premortem]) -> list[tuple[float, bool]]:
    """Return the forecasts of failure whose outcome is known."""
    return [(one.failure, one.failed) for one in premortems if one.is_scored]


def risk_forecasts(premortems: Sequence[Premortem]) -> list[tuple[float, bool]]:
    """Return the forecasts of single risks whose outcome is known."""
    found: list[tuple[float, bool]] = []
    for one in premortems:
        true = {text.casefold() for text in one.came_true}
        found += [(r[1], r.text.casefold() in true) for r in one.risks if one.is_scored]
    return found


def _check_texts(texts: Sequence[str]) -> None:
    for text in texts:
        if not text.strip() or len(text) > LONGEST:
            raise UsageError(f"what may go wrong takes 1 to {LONGEST} characters, got {len(text)}")
        if texts.count(text) > 1:
            raise UsageError(f"`{text}` is given twice; give it once")
    if len(texts) > MOST_RISKS:
        raise UsageError(f"{len(texts)} are too many; give at most {MOST_RISKS}")


def _append(run: Run, record: Mapping[str, Any]) -> None:
    with LinesWriter(run.folder / FILE) as file:
        file.write(record)
        file.sync()


def _premortem(run: Run, fields: Mapping[str, Any]) -> Premortem | None:
    """Return a premortem from its record, which another program may have written."""
    surprise, at = finite(fields.get("surprise")), finite(fields.get("time"))
    if surprise is None or at is None or not 0.0 <= surprise <= 1.0:
        return None
    risks = [_risk(one) for one in list_of(fields.get("risks"))[:MOST_RISKS]]
    named = tuple(risk for risk in risks if risk)
    return Premortem(run.short, at, 1.0 - surprise, named, _is_late(run, fields, at))


def _is_late(run: Run, fields: Mapping[str, Any], at: float) -> bool:
    """Return whether a run was over when its premortem was written: as recorded, or as it ended."""
    ends = [seconds_of(e.get("time")) for e in run.events() if e.get("status") == "finished"]
    return fields.get("late") is True or any(end is not None and end < at for end in ends)


def _risk(fields: Any) -> Risk | None:
    if not isinstance(fields, dict):
        return None
    text, share = fields.get("text"), finite(fields.get("probability"))
    if not isinstance(text, str) or share is None or not 0.0 <= share <= 1.0:
        return None
    return Risk(text[:LONGEST], share)
