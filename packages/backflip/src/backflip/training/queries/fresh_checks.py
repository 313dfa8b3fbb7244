"""Watches the learned reward of a run: metrics, notes and the result of its reward alarm."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from backflip.preferences.fresh_pairs import fresh_answers
from backflip.preferences.labels import LabelStore
from backflip.preferences.reward_alarm import FALSE_ALARMS, Alarm, alarm_of, checks_of
from runshelf.formatting import plural

FEWEST_FOR_PERCENT = 10  # pairs whose share is written as a percentage
RAISED = "REWARD ALARM"  # how the words of a raised alarm begin
CHECK_METRICS = (
    "fresh_checks",
    "fresh_agreement",
    "fresh_agreement_expected",
    "fresh_new_preferred",
    "fresh_evidence",
)


def fresh_until(store: LabelStore, seeds: Sequence[int], env_steps: int) -> int:
    """Return how many fresh pairs about clips until `env_steps` a seed has, at most.

    In a child these are the pairs of its parents; a run without a parent has none until 0.
    """
    every = (fresh_answers(store, seed) for seed in seeds)
    return max(sum(one.env_steps <= env_steps for one in some) for some in every)


@final
class FreshChecks:
    """The answered fresh pairs of a run.

    Args:
        store: the run's labels.
        seeds: its seeds.
        planned: fresh pairs of each seed in the whole run, those of its parents included.
        alarms: the alarms that the run has recorded, in words.
    """

    def __init__(
        self, store: LabelStore, seeds: Sequence[int], planned: int, alarms: Sequence[str] = ()
    ) -> None:
        self._store, self._seeds, self.planned = store, seeds, planned
        self._announced = any(alarm.startswith(RAISED) for alarm in alarms)

    def alarm(self) -> Alarm:
        """Return what all seeds say together."""
        return alarm_of(
            {seed: checks_of(fresh_answers(self._store, seed)) for seed in self._seeds},
            self.planned,
        )

    def announce(self, say: Callable[[str], None], record: Callable[..., None]) -> Alarm:
        """Return the alarm; when it is raised, say so once and record an event."""
        alarm = self.alarm()
        if alarm.state == "alarm" and not self._announced:
            self._announced = True
            record(in_words(alarm), env_steps=alarm.raised_at)
            say(in_words(alarm))
        return alarm

    def result(self) -> dict[str, Any] | None:
        """Return the entry of the result; None if the run has no fresh pairs."""
        if not self.planned:
            return None
        alone = {}
        for seed in self._seeds:
            checks = checks_of(fresh_answers(self._store, seed))
            alone[seed] = alarm_of({seed: checks}, self.planned)
        together = self.alarm()
        return {
            **together._asdict(),
            "false_alarms": FALSE_ALARMS,
            "in_words": in_words(together),
            "seeds": [{"seed": seed, **one._asdict()} for seed, one in alone.items()],
        }


def metrics_of(alarm: Alarm) -> dict[str, float]:
    """Return the metrics of an alarm, all seeds together; NaN where there are no checks."""
    known = (
        alarm.checks,
        alarm.agreement,
        alarm.expected,
        alarm.new_preferred,
        alarm.evidence,
    )
    pairs = zip(CHECK_METRICS, known, strict=True)
    return {name: float("nan") if value is None else float(value) for name, value in pairs}


def health_of_checks(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return what the health line shows: agreement, and the evidence once there is an alarm."""
    names = ["fresh_agreement"]
    if metrics.get("fresh_evidence", 0.0) >= 1 / FALSE_ALARMS:
        names.append("fresh_evidence")
    return {name: metrics[name] for name in names if math.isfinite(metrics.get(name, math.nan))}


def in_words(alarm: Alarm) -> str:
    """Return what the checks say, as one line."""
    if not alarm.checks:
        return "reward alarm: not enough checks (no fresh pair is answered)"
    agrees = _share(alarm.agreement or 0.0, alarm.checks, "fresh pair")
    said = f"the teacher agrees with the learned reward in {agrees}"
    if alarm.new_preferred is not None:
        newer = _share(alarm.new_preferred, alarm.against_old, "pair")
        said += f" and prefers new to old behaviour in {newer}"
    if alarm.state == "alarm":
        return f"{RAISED} at {alarm.raised_at:,} env steps: the learned return rises, but {said}"
    return f"reward alarm: {alarm.state}; {said}"


def _share(share: float, pairs: int, what: str) -> str:
    """Return a share of pairs: of few as a number, in which a tie counts half."""
    if pairs >= FEWEST_FOR_PERCENT:
        return f"{share:.0%} of {plural(pairs, what)}"
    halves = " (a tie counts half)" if round(2 * share * pairs) % 2 else ""
    return f"{share * pairs:g} of {plural(pairs, what)}{halves}"
