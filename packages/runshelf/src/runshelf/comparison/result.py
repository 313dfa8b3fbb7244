"""What a comparison found: numbers for each side, each pair of sides, and across environments."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from runshelf.comparison.fairness import Budget
from runshelf.comparison.groups import Difference
from runshelf.comparison.references import Better, Reference
from runshelf.comparison.registered import Registered
from runshelf.comparison.seed_values import SeedValue
from runshelf.statistics.aggregates import Profile
from runshelf.statistics.estimate import Estimate

NONE = Estimate(math.nan, math.nan, math.nan, 0)  # of seeds without values


@final
@dataclass(frozen=True)
class SideResult:
    """One side in one environment.

    Attributes:
        label: the label of the side.
        seeds: every seed.
        counted: the value of each seed that statistics use; a failure has the registered value
            or the worst value seen.
        mean: the mean with its interval.
        median: the median.
        worst: the worst value.
        area: the mean height of the curves with its interval, over seeds without failures.
        above: how many seeds reach the threshold; None without one.
        share: the share of seeds that reach it, with its interval.
    """

    label: str
    seeds: list[SeedValue]
    counted: list[float]
    mean: Estimate
    median: float
    worst: float
    area: Estimate
    above: int | None = None
    share: Estimate | None = None

    @property
    def failures(self) -> int:
        """The number of seeds that count as failures."""
        return sum(bool(one.failure) for one in self.seeds)


@final
@dataclass(frozen=True)
class PairResult:
    """Two sides in one environment.

    Attributes:
        one: the label of the first side.
        other: the label of the second side.
        difference: the mean of the first minus that of the second, with Welch's interval.
        p: the p-value of the test.
        p_corrected: the same after Holm's correction over all pairs of all environments.
        better: P(X > Y), that a seed of the first side is better than one of the second.
        test: `permutation` or `welch`.
        conclusion: what may and may not be concluded, in words.
    """

    one: str
    other: str
    difference: Estimate
    p: float
    p_corrected: float
    better: Estimate
    test: str
    conclusion: str


@final
@dataclass(frozen=True)
class EnvironmentResult:
    """One environment.

    Attributes:
        env: the environment.
        sides: the sides that have it, in order.
        pairs: the pairs of sides that are compared.
        floor: the value of failures in the statistics; None without failures.
        floor_is_registered: whether that value is registered; else it is the worst of any seed.
        reference: what normalised scores take as 0 and 1; None if unknown.
        threshold: the value that successes reach; None without one.
    """

    env: str
    sides: list[SideResult]
    pairs: list[PairResult]
    floor: float | None
    floor_is_registered: bool
    reference: Reference | None
    threshold: float | None = None

    @property
    def has_curves(self) -> bool:
        """Whether a seed has more than one value, so that there is a curve and an area."""
        seeds = [seed for side in self.sides for seed in side.seeds]
        return any(seed.outline and seed.outline.values > 1 for seed in seeds)


@final
@dataclass(frozen=True)
class AcrossResult:
    """Normalised scores over several environments.

    Attributes:
        envs: the environments that all these sides have, and whose references are known.
        labels: the labels of the sides.
        iqm: the interquartile mean of each side, with its interval.
        mean: the mean of each side, with its interval.
        profiles: of each side, the share of runs with a score above each of several values.
        improvement: P(X > Y) of pairs of sides, averaged over environments.
        notes: what was left out, in words.
    """

    envs: list[str]
    labels: list[str]
    iqm: list[Estimate]
    mean: list[Estimate]
    profiles: list[Profile]
    improvement: list[tuple[str, str, Estimate]]
    notes: list[str]


@final
@dataclass(frozen=True)
class ComparisonResult:
    """A comparison of sides by one metric.

    Attributes:
        labels: the labels of the sides.
        metric: the metric.
        window: the value of a seed is the mean over the last `window` per cent of its curve.
        axis: what the curves are over.
        better: whether higher or lower values are better.
        alpha: the level of the tests.
        environments: each environment that two sides have, or the only side.
        across: over several environments; None if there is only one with a known reference.
        differences: what separates the sides: settings, code, packages.
        budgets: what each side spent.
        notes: what a reader must know about the seeds.
        registered: the registration that it follows; None if it is exploratory.
        left_out: environments that only one of several sides has.
    """

    labels: list[str]
    metric: str
    window: int
    axis: str
    better: Better
    alpha: float
    environments: list[EnvironmentResult]
    across: AcrossResult | None
    differences: Sequence[Difference]
    budgets: list[Budget]
    notes: list[str]
    registered: Registered | None = None
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
