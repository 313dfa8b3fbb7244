"""Compares sides over their seeds: reads their values, and computes every number of the result."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.comparison.across import across
from runshelf.comparison.conclusions import conclusion, unseen
from runshelf.comparison.fairness import budgets, check_tuning, notes_on
from runshelf.comparison.groups import Difference, differences
from runshelf.comparison.references import Better, Reference, references
from runshelf.comparison.registered import (
    Registered,
    beside_registration,
    registration_names,
)
from runshelf.comparison.result import (
    NONE,
    ComparisonResult,
    EnvironmentResult,
    PairResult,
    SideResult,
)
from runshelf.comparison.seed_values import (
    OnRead,
    SeedValue,
    SideValues,
    common_metric,
    values_of,
)
from runshelf.comparison.sides import Side
from runshelf.errors import UsageError
from runshelf.index.rows import RunRow
from runshelf.registrations.kept import Kept, find
from runshelf.registrations.registration import WINDOW, Registration, Test
from runshelf.statistics.differences import difference, welch
from runshelf.statistics.mean import mean_estimate
from runshelf.statistics.multiplicity import holm
from runshelf.statistics.proportions import wilson
from runshelf.statistics.superiority import probability_of_superiority
from runshelf.store.results import is_return, named_metric
from runshelf.store.run import open_run

MOST_FOR_ALL_PAIRS = 10  # of more sides, each is compared with the first only
NO_REGISTRATION = "none"

Floats = Float[np.ndarray, " seeds"]

_LOWER = re.compile(r"(^|[/_.])(loss|error|regret|cost)([/_.]|$)", re.IGNORECASE)


@final
@dataclass(frozen=True)
class Question:
    """What the user asks of a comparison; None for the default.

    Attributes:
        metric: the metric.
        window: per cent of the end of a curve.
        better: whether higher or lower values are better.
        threshold: seeds that reach it are successes: `X`, or `ENV=X` for one environment.
        test: the test of a difference.
        alpha: the level of the tests.
        low: `ENV=X`, the values with the score 0.
        high: `ENV=X`, the values with the score 1.
        references: a file with both.
        registered: the name of a registration, or `none`.
        allow_tuning: whether seeds on which settings were chosen may be compared.
    """

    metric: str | None = None
    window: int | None = None
    better: Better | None = None
    threshold: tuple[str, ...] = ()
    test: Test | None = None
    alpha: float | None = None
    low: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    references: Path | None = None
    registered: str | None = None
    allow_tuning: bool = False


@final
class Plan(NamedTuple):
    """One analysis, with every default filled in; the key of a threshold for all is empty."""

    metric: str
    window: int
    better: Better
    threshold: Mapping[str, float]
    test: Test
    alpha: float
    failure_value: float | None = None


def compare_sides(
    home: Path,
    sides: Sequence[Side],
    question: Question,
    on_read: OnRead | None = None,
    *,
    keeps: bool = True,
) -> list[ComparisonResult]:
    """Return the registered analysis, if there is one, then the one that the user asks for.

    Args:
        home: the home, which keeps the registrations.
        sides: the sides.
        question: what the user asks for.
        on_read: called with the number of runs that are read, and of all.
        keeps: whether the outlines of long curves are written for the next time.

    Raises:
        UsageError: the sides cannot be compared; the message says why.
        UserFacingError: a file cannot be read.
    """
    registered = _registered(home, sides, question)
    plans = _plans(home, sides, question, registered)
    found: list[ComparisonResult] = []
    for place, plan in enumerate(plans):
        values = values_of(sides, plan.metric, plan.window, on_read, keeps=keeps)
        beside = None
        if registered and place == 0:
            beside = beside_registration(home, registered.name, values, version=registered.version)
        found.append(_compare(values, plan, question, beside))
    return found


def plan_of(registration: Registration, better: Better | None = None) -> Plan:
    """Return the analysis that is registered."""
    one = registration
    better = better or better_direction(one.metric)
    threshold = {} if one.threshold is None else {"": one.threshold}
    return Plan(
        metric=one.metric,
        window=one.window,
        better=better,
        threshold=threshold,
        test=one.test,
        alpha=one.alpha,
        failure_value=one.failure_value,
    )


def thresholds(texts: Iterable[str]) -> dict[str, float]:
    """Return thresholds by environment from `X` and `ENV=X`; the key is empty for all others.

    Raises:
        UsageError: a text has no number, or one that is not finite.
    """
    found: dict[str, float] = {}
    for text in texts:
        env, _, value = text.rpartition("=")
        number = _number(value)
        if not math.isfinite(number):
            raise UsageError(f"`--threshold` must be X or ENV=X, got `{text}`; try 475")
        found[env] = number
    return found


def _number(text: str) -> float:
    """Return the number that a text is; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def better_direction(metric: str) -> Better:
    """Return which values of a metric are better: lower ones for losses and errors."""
    return "lower" if _LOWER.search(metric) else "higher"


def _registered(home: Path, sides: Sequence[Side], question: Question) -> Kept | None:
    """Return the registration to follow: the one that the user names, or that the runs carry."""
    if question.registered == NO_REGISTRATION:
        return None
    name = question.registered or next(iter(registration_names(sides)), None)
    return find(home, name) if name else None


def _plans(
    home: Path, sides: Sequence[Side], question: Question, registered: Kept | None
) -> list[Plan]:
    """Return the registered plan, if any, and the user's if it differs."""
    first = plan_of(registered.registration) if registered else None
    if first is None:
        metric = question.metric or common_metric(sides, named_metric(home))
        first = Plan(metric, WINDOW, better_direction(metric), {}, "permutation", 0.05)
        return [_changed(first, question)]
    other = _changed(first, question)
    return [first] if other == first else [first, other]


def _changed(plan: Plan, question: Question) -> Plan:
    """Return a plan with what the user asks for."""
    metric = question.metric or plan.metric
    if metric != plan.metric:  # what is registered about values is about those of its metric
        better = better_direction(metric)
        plan = plan._replace(metric=metric, better=better, threshold={}, failure_value=None)
    asked = {
        "better": question.better,
        "window": question.window,
        "threshold": thresholds(question.threshold) or None,
        "test": question.test,
        "alpha": question.alpha,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    return plan._replace(**given)


def _compare(
    values: list[SideValues], plan: Plan, question: Question, registered: Registered | None
) -> ComparisonResult:
    warnings = check_tuning(values, allowed=question.allow_tuning)
    envs = list(dict.fromkeys(env for one in values for env in one.values))
    common = [env for env in envs if len(values) == 1 or _owners(values, env, 2)]
    known = references(
        common,
        question.low,
        question.high,
        question.references,
        of_return=is_return(plan.metric),
        better=plan.better,
    )
    found = [_environment(env, values, plan, known.get(env)) for env in common]
    found = _corrected(found, plan)
    return ComparisonResult(
        labels=[one.side.label for one in values],
        metric=plan.metric,
        window=plan.window,
        axis=_axis(values),
        better=plan.better,
        alpha=plan.alpha,
        environments=found,
        across=across(found),
        differences=_differences(values),
        budgets=budgets(values),
        notes=[*warnings, *notes_on(values, plan.metric), *_unseen(found)],
        registered=registered,
        left_out={env: _owners(values, env, 1)[0] for env in envs if env not in common},
    )


def _owners(values: Sequence[SideValues], env: str, least: int) -> list[str]:
    """Return the labels of the sides that have an environment, if there are enough of them."""
    labels = [one.side.label for one in values if one.values.get(env)]
    return labels if len(labels) >= least else []


def _environment(
    env: str, values: Sequence[SideValues], plan: Plan, reference: Reference | None
) -> EnvironmentResult:
    here = {one.side.label: one.values[env] for one in values if one.values.get(env)}
    floor = _floor([seed for of in here.values() for seed in of], plan)
    threshold = plan.threshold.get(env, plan.threshold.get(""))
    sides = [_side(label, seeds, floor, threshold, plan) for label, seeds in here.items()]
    pairs = [_pair(one, other, plan) for one, other in _pairs(sides)]
    failed = any(side.failures for side in sides)
    return EnvironmentResult(
        env=env,
        sides=sides,
        pairs=pairs,
        floor=floor if failed else None,
        floor_is_registered=plan.failure_value is not None,
        reference=reference,
        threshold=threshold,
    )


def _floor(seeds: Iterable[SeedValue], plan: Plan) -> float:
    """Return what a failure counts as: what is registered, else the worst value of any seed.

    NaN without values.
    """
    if plan.failure_value is not None:
        return plan.failure_value
    known = [one.value for one in seeds if math.isfinite(one.value)]
    if not known:
        return math.nan
    return min(known) if plan.better == "higher" else max(known)


def _pairs(sides: Sequence[SideResult]) -> list[tuple[SideResult, SideResult]]:
    """Return all pairs of sides; of many sides, each with the first one."""
    if len(sides) > MOST_FOR_ALL_PAIRS:
        return [(sides[0], other) for other in sides[1:]]
    return list(itertools.combinations(sides, 2))


def _side(
    label: str, seeds: list[SeedValue], floor: float, threshold: float | None, plan: Plan
) -> SideResult:
    counted = [floor if one.failure else one.value for one in seeds]
    areas = [one.area for one in seeds if not one.failure and math.isfinite(one.area)]
    known = [] if math.isnan(floor) else counted
    above = None
    if threshold is not None:
        above = sum(_reaches(one, threshold, plan.better) for one in seeds)
    return SideResult(
        label=label,
        seeds=seeds,
        counted=counted,
        mean=mean_estimate(np.array(known)) if known else NONE,
        median=float(np.median(known)) if known else math.nan,
        worst=(min if plan.better == "higher" else max)(known) if known else math.nan,
        area=mean_estimate(np.array(areas)) if areas else NONE,
        above=above,
        share=None if above is None else wilson(above, len(seeds)),
    )


def _reaches(one: SeedValue, threshold: float, better: Better) -> bool:
    if one.failure:
        return False
    return one.value >= threshold if better == "higher" else one.value <= threshold


def _unseen(found: Sequence[EnvironmentResult]) -> list[str]:
    least = min((len(side.seeds) for env in found for side in env.sides), default=0)
    return [text] if least and (text := unseen(least)) else []


def _axis(values: Sequence[SideValues]) -> str:
    axes = {s.outline.axis for one in values for of in one.values.values() for s in of if s.outline}
    return axes.pop() if len(axes) == 1 else "step"


def _differences(values: Sequence[SideValues]) -> list[Difference]:
    """Return what separates the newest runs of the sides."""
    if len(values) < 2:
        return []
    envs = [env for one in values for env in one.values]
    env = max(dict.fromkeys(envs), key=envs.count)  # runs of one environment differ in it only
    rows = [_newest(one, env) for one in values]
    return differences([open_run(row.folder) for row in rows])


def _newest(one: SideValues, env: str) -> RunRow:
    rows = [row for row in one.side.rows if row.env == env]
    return (rows or one.side.rows)[0]


def _pair(one: SideResult, other: SideResult, plan: Plan) -> PairResult:
    a, b = np.array(one.counted), np.array(other.counted)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        why = f"{one.label} and {other.label} cannot be compared: no seed has a value"
        return PairResult(
            one=one.label,
            other=other.label,
            difference=NONE,
            p=math.nan,
            p_corrected=math.nan,
            better=NONE,
            test=plan.test,
            conclusion=why,
        )
    found = difference(a, b)
    better = found.superiority if plan.better == "higher" else probability_of_superiority(b, a)
    p = _welch_p(a, b) if plan.test == "welch" else found.test.p
    return PairResult(
        one=one.label,
        other=other.label,
        difference=found.means,
        p=p,
        p_corrected=p,
        better=better,
        test=plan.test,
        conclusion="",
    )


def _welch_p(one: Floats, other: Floats) -> float:
    """Return the p-value of Welch's test: the level at which its interval just contains 0.

    NaN with one seed on a side, or if no side has any spread.
    """
    if not welch(one, other).has_width:
        return math.nan
    low, high = 0.0, 1.0
    for _ in range(40):
        level = (low + high) / 2
        ends = welch(one, other, 1.0 - level)
        low, high = (level, high) if ends.low <= 0.0 <= ends.high else (low, level)
    return high


def _corrected(found: list[EnvironmentResult], plan: Plan) -> list[EnvironmentResult]:
    """Correct the p-values of all pairs of all environments together, and conclude."""
    pairs = [pair for env in found for pair in env.pairs]
    known = [pair.p for pair in pairs if math.isfinite(pair.p)]
    corrected = iter(holm(np.array(known)).tolist())
    done = iter(
        [
            replace(pair, p_corrected=next(corrected)) if math.isfinite(pair.p) else pair
            for pair in pairs
        ]
    )
    return [
        replace(env, pairs=[_concluded(next(done), env, plan, len(known)) for _ in env.pairs])
        for env in found
    ]


def _concluded(pair: PairResult, env: EnvironmentResult, plan: Plan, tests: int) -> PairResult:
    if pair.conclusion:
        return pair
    sides = {side.label: side for side in env.sides}
    one, other = sides[pair.one], sides[pair.other]
    text = conclusion(pair, one, other, alpha=plan.alpha, better=plan.better, tests=max(tests, 1))
    return replace(pair, conclusion=text)
