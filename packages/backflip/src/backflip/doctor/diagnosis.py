"""Applies the checks to a log, and weighs what may be the cause."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from backflip.doctor.calibration import Calibration, limit_of, why_no_limit
from backflip.doctor.catalogue import CHECKS
from backflip.doctor.causes import CAUSES
from backflip.doctor.check import Cause, Check, Running
from backflip.doctor.checks.optimising import ALWAYS_FINITE
from backflip.doctor.log import Log, Signal, Values
from backflip.doctor.measures import smoothed
from runshelf.formatting import plural

# Probability that a check finds something that a cause does not explain, by the kind of its limit.
BY_CHANCE = {"identity": 0.002, "setting": 0.002, "calibrated": 0.04, "convention": 0.04}
# Exponent of a check's likelihood. Checks of one log are not independent, but for identities and
# settings, which see a cause and not its effects.
TRUST = {"identity": 1.0, "setting": 1.0, "calibrated": 0.6, "convention": 0.6}
SILENT = 0.25  # factor of that exponent for a check that found nothing; tuned, see docs/faults.md
MOST_EXPECTED = 0.9  # of the prior, for causes that a person expected: others stay possible
LEAST_EXPECTED = 0.01
RETURN = "episode_return_mean"
# Without one of them, a log holds settings and speeds only.
OF_LEARNING = (RETURN, "evaluation_return", *ALWAYS_FINITE)
FEWEST = 10  # logged points; below, little can be said
NEED_NO_POINTS = ("setting", "identity")  # kinds of limits that one value can be beyond


@final
class Measured(NamedTuple):
    """What a check measured.

    Attributes:
        check: the check.
        value: the worst value.
        limit: its limit.
        since: env steps at which the limit was first crossed; NaN if it was not.
    """

    check: Check
    value: float
    limit: float
    since: float

    @property
    def is_found(self) -> bool:
        """Whether the limit was crossed."""
        return not math.isnan(self.since)


@final
class Unchecked(NamedTuple):
    """A check that was not made, and why."""

    check: Check
    missing: tuple[str, ...]
    why: str


@final
class Ranked(NamedTuple):
    """A cause and its probability, given all checks; those of all causes add up to 1."""

    cause: Cause
    probability: float


@final
class Diagnosis(NamedTuple):
    """What can be said about one training run.

    Attributes:
        log: its log.
        findings: checks beyond their limits, the most certain first.
        warnings: those that healthy runs may show, too.
        remarks: facts about the task and its progress.
        fine: checks within their limits.
        unchecked: checks that were not made.
        causes: the most probable first; empty without findings.
        progress: whether the return rose beyond its spread, does not end well below its best, and
            no check of the return found anything; None if unknown.
    """

    log: Log
    findings: list[Measured]
    warnings: list[Measured]
    remarks: list[Measured]
    fine: list[Measured]
    unchecked: list[Unchecked]
    causes: list[Ranked]
    progress: bool | None

    @property
    def can_tell(self) -> bool:
        """Whether enough was logged to say anything."""
        others = len(self.fine) + len(self.warnings) + len(self.remarks)
        says_return = self.log.has(RETURN) or self.log.library != "unknown"
        is_told = self.log.library == "backflip" or self.log.has_any(*OF_LEARNING)
        return bool(self.findings) or (is_told and others >= (1 if says_return else FEWEST))

    @property
    def verdict(self) -> str:
        """The diagnosis in one sentence."""
        if not self.can_tell:
            return f"Too little is logged to say anything{self._what_lacks}."
        if self.findings:
            seen = f"{self.findings[0].check.id}: {self.findings[0].check.title}"
            rest = len(self.findings) - 1
            more = f", and {rest} more finding{'s' * (rest > 1)}" if rest else ""
            effect = "; no effect on learning was seen" if self.progress else ""
            return f"Something is wrong ({seen}{more}){effect}."
        if self.warnings:
            return f"Nothing is proven wrong, but look at this: {self.warnings[0].check.title}."
        if self.remarks:
            on_return = (one for one in self.remarks if RETURN in one.check.needs)
            return f"Nothing wrong was seen; {next(on_return, self.remarks[0]).check.title}."
        if len(self.fine) < FEWEST:
            return f"Nothing wrong was seen, in {plural(len(self.fine), 'check')} only."
        return "Nothing wrong was seen."

    @property
    def _what_lacks(self) -> str:
        """What is missing, as the end of the sentence about too little; empty if it is unknown."""
        rows = max((len(one.x) for one in self.log.signals.values()), default=0)
        if 0 < rows < FEWEST:
            return f": {plural(rows, 'row')}, and at least {FEWEST} are needed"
        return (
            "" if self.log.has(RETURN) or not rows else ": no name is known as that of the return"
        )


def diagnose(log: Log, calibration: Calibration | None = None) -> Diagnosis:
    """Return what can be said about a training run from its log.

    Settings and identities can be found wrong before there are enough points; the rest is unchecked
    until then.

    Args:
        log: the log.
        calibration: what healthy runs showed; by default what is shipped.
    """
    measured, unchecked = list[Measured](), list[Unchecked]()
    points = max((len(one.x) for one in log.signals.values()), default=0)
    for check in CHECKS:
        if not check.applies_to(log):
            continue
        missing = tuple(name for name in check.needs if not log.has(name))
        enough = points >= FEWEST
        told = enough or check.limit_from in NEED_NO_POINTS
        running = run_check(check, log) if told and not missing else None
        limit = limit_of(check, log, calibration)
        one = None if running is None or limit is None else against(check, running, limit)
        if one is not None and (enough or one.is_found):
            measured.append(one)
        else:
            why = _why(check, missing, points, running)
            if not why and limit is None:
                why = why_no_limit(check, log, calibration)
            unchecked.append(Unchecked(check, missing, why))
    measured = _without_repetition(measured)
    found = sorted((one for one in measured if one.is_found), key=_certainty)
    findings, warnings, remarks = (
        [one for one in found if one.check.severity == severity]
        for severity in ("finding", "warning", "remark")
    )
    progress = next((not m.is_found for m in measured if m.check.id == "ENV-NOTHING"), None)
    fell = any(one.check.id == "ENV-LOST" for one in remarks)
    if any(one.check.needs == (RETURN,) for one in findings) or fell or not _ends_higher(log):
        progress = False if progress is not None else None
    return Diagnosis(
        log=log,
        findings=findings,
        warnings=warnings,
        remarks=remarks,
        fine=[one for one in measured if not one.is_found],
        unchecked=unchecked,
        causes=rank(measured, log) if found else [],
        progress=progress,
    )


def _without_repetition(measured: Sequence[Measured]) -> list[Measured]:
    """Return the measured checks without findings that a stronger check has made, too."""
    found = {one.check.id for one in measured if one.is_found}
    return [one for one in measured if not one.is_found or not found & {*one.check.superseded_by}]


def _ends_higher(log: Log) -> bool:
    """Return whether the return ends above its first values; True if it is not known."""
    returns = smoothed(log, log.signals[RETURN], 0.05).value if log.has(RETURN) else np.empty(0)
    return not len(returns) or bool(returns[-1] > returns[0])


def run_check(check: Check, log: Log) -> Running | None:
    """Return what a check measures; None if it cannot."""
    with np.errstate(all="ignore"):  # logs may hold infinities
        running = check.measure(log)
    return running if running is not None and np.isfinite(running.value).any() else None


def signal_of(log: Log, check: Check) -> Signal | None:
    """Return the first signal that a check needs, if it has two finite values; else None."""
    found = next((log.signals[name] for name in check.needs if log.has(name)), None)
    return found if found is not None and np.isfinite(found.y).sum() > 1 else None


def against(check: Check, running: Running, limit: float) -> Measured:
    """Return the worst value of what was measured, and since when it is beyond its limit."""
    worst = np.nanmax(running.value) if check.bad_side == "above" else np.nanmin(running.value)
    beyond = running.value > limit if check.bad_side == "above" else running.value < limit
    since = float(running.x[np.argmax(beyond)]) if beyond.any() else math.nan
    return Measured(check, float(worst), limit, since)


def rank(measured: Sequence[Measured], log: Log) -> list[Ranked]:
    """Return the causes that are possible, with their probabilities, the most probable first.

        P(c | checks) ∝ P(c) Π_i P(check i | c)^τ_i

    P(c) is the share that `priors` gives. P(check i | c) is what the check states for the cause if
    it found something, or 1 minus that; a check that does not name the cause finds something by
    chance, and a remark as often as in healthy runs. τ_i is `TRUST`, times `SILENT` if the check
    found nothing and is not conclusive: many signs of a cause are there only sometimes. A check of
    a setting that found nothing is left out: even a usual learning rate can be too large for a
    task.
    """
    possible = [cause for cause in CAUSES if cause.is_possible(log)]
    weights = np.log(priors(possible, log.expected))
    for one in measured:
        if one.check.limit_from == "setting" and not one.is_found:
            continue
        for place, cause in enumerate(possible):
            chance = one.check.causes.get(cause.id, by_chance(one.check))
            seen = chance if one.is_found else 1.0 - chance
            trust = _trust(one)
            weights[place] += trust * math.log(seen)
    shares = np.exp(weights - weights.max())
    shares /= shares.sum()
    ranked = [Ranked(cause, float(share)) for cause, share in zip(possible, shares, strict=True)]
    return sorted(ranked, key=lambda one: -one.probability)


def _trust(one: Measured) -> float:
    """Return the exponent τ of what a check says."""
    if one.is_found:
        return 1.0 if one.check.is_direct else TRUST[one.check.limit_from]
    return TRUST[one.check.limit_from] * (1.0 if one.check.is_conclusive else SILENT)


def by_chance(check: Check) -> float:
    """Return the probability that a check finds something that a cause does not explain."""
    usual = BY_CHANCE["setting" if check.is_direct else check.limit_from]
    return usual if check.healthy_share is None else max(usual, check.healthy_share)


def priors(causes: Sequence[Cause], expected: Mapping[str, float]) -> Values:
    """Return the probabilities of causes before any check; they add up to 1.

        P(c) = max(e_c, 0.01) s                                        if a person expected c
        P(c) = (1 - Σ_expected P) prior_c / Σ_others prior             otherwise

    e_c is the probability that the person gave; s is 1, or less so that Σ_expected P ≤ 0.9.

    Args:
        causes: the possible causes.
        expected: e, by the id of the cause.
    """
    named = np.asarray([cause.id in expected for cause in causes])
    given = np.asarray([max(expected.get(cause.id, 0.0), LEAST_EXPECTED) for cause in causes])
    own = np.asarray([cause.prior for cause in causes])
    shares = np.where(named, given * min(1.0, MOST_EXPECTED / max(given[named].sum(), 1e-9)), 0.0)
    shares += np.where(named, 0.0, (1.0 - shares.sum()) * own / max(own[~named].sum(), 1e-9))
    return shares / shares.sum()


def _certainty(one: Measured) -> tuple[int, float]:
    """Return the place in the order of findings: identities first, then by size."""
    order = {"identity": 0, "setting": 0, "calibrated": 1, "convention": 2}[one.check.limit_from]
    size = abs(one.value - one.limit) / (abs(one.limit) + 1e-9)
    return order, -size


def _why(check: Check, missing: tuple[str, ...], points: int, running: Running | None) -> str:
    """Return what a log lacks for a check; empty if it lacks nothing."""
    if missing:
        return f"not logged: {', '.join(missing)}"
    if points < FEWEST:
        return f"{plural(points, 'logged point')}, and at least {FEWEST} are needed"
    if running is not None:
        return ""
    if check.unmeasured:
        return check.unmeasured
    is_of_setting = check.limit_from == "setting" and not check.needs
    return "its setting is not known" if is_of_setting else "it cannot be measured in this log"
