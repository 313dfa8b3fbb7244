"""The difference of two groups: how large, how sure, how often one run beats the other."""

import math
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.statistics.distributions import student_quantile
from runshelf.statistics.estimate import CONFIDENCE, Estimate
from runshelf.statistics.failures import count_failures
from runshelf.statistics.mean import moments
from runshelf.statistics.permutation import PermutationTest, permutation_test
from runshelf.statistics.superiority import probability_of_superiority


@final
class Difference(NamedTuple):
    """Two groups of runs compared.

    Attributes:
        means: the first mean minus the second, with Welch's interval.
        test: the permutation test of the difference of means.
        superiority: the probability that a run of the first group is higher, ties half.
        failures: how many runs of each group had no finite score.
        failure_value: the score that these runs got; NaN if no run failed.
    """

    means: Estimate
    test: PermutationTest
    superiority: Estimate
    failures: tuple[int, int]
    failure_value: float


def difference(
    first: Float[np.ndarray, " runs"],
    second: Float[np.ndarray, " others"],
    failure_value: float | None = None,
    *,
    higher_is_better: bool = True,
) -> Difference:
    """Return how two groups differ; runs without a finite score count as failures.

    A failed run gets the failure value, or the worst finite score of both groups; `failures.py`
    says more.

    Raises:
        ValueError: a group is empty, or failed runs cannot get a score.
    """
    counted = count_failures((first, second), failure_value, higher_is_better=higher_is_better)
    one, other = counted.groups
    return Difference(
        welch(one, other),
        permutation_test(one, other),
        probability_of_superiority(one, other),
        (counted.failures[0], counted.failures[1]),
        counted.value,
    )


def welch(
    first: Float[np.ndarray, " runs"],
    second: Float[np.ndarray, " others"],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Return the difference of means with Welch's interval.

    The ends are NaN with one run in a group, and not finite for values too far apart for floats.

    d ± t(ν) √(v + w) with v = s₁²/n, w = s₂²/m and
    ν = (v + w)² / (v² / (n - 1) + w² / (m - 1)). Groups without any spread give no width.

    Source: Welch 1947, Biometrika 34(1-2).

    Raises:
        ValueError: a group is empty.
    """
    n, m = len(first), len(second)
    if not n or not m:
        raise ValueError(f"expected at least one run in each group, got {n} and {m}")
    (mean, deviation), (other, spread) = _moments(first), _moments(second)
    apart = mean - other
    if min(n, m) < 2:
        return Estimate(apart, math.nan, math.nan, n + m)
    unit = max(deviation, spread)
    if unit == 0.0:
        return Estimate(apart, apart, apart, n + m)
    if not math.isfinite(unit):
        return Estimate(apart, math.nan, math.nan, n + m)
    v, w = (deviation / unit) ** 2 / n, (spread / unit) ** 2 / m  # squares may be too large
    shares = v / (v + w), w / (v + w)
    freedom = 1.0 / (shares[0] ** 2 / (n - 1) + shares[1] ** 2 / (m - 1))
    half = student_quantile(freedom, 0.5 + confidence / 2.0) * unit * math.sqrt(v + w)
    return Estimate(apart, apart - half, apart + half, n + m)


def _moments(group: Float[np.ndarray, " runs"]) -> tuple[float, float]:
    """Return mean and sample standard deviation, which is exactly 0 for equal values."""
    mean, deviation, _ = moments(np.asarray(group, float)[:, None])
    return float(mean[0]), float(deviation[0])
