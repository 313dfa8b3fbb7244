"""P(X > Y): how often does a run of one group beat a run of the other?"""

import math

import numpy as np
from jaxtyping import Float

from runshelf.statistics.distributions import student_quantile
from runshelf.statistics.estimate import CONFIDENCE, Estimate


def probability_of_superiority(
    first: Float[np.ndarray, " runs"],
    second: Float[np.ndarray, " others"],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Return θ = P(X > Y) + P(X = Y) / 2 with a score interval.

    The estimate is the share of the n m pairs that X wins, ties half. The ends are the θ with
    |estimate - θ| = t √V(θ), where

        V(θ) = θ (1 - θ) (1 + (N - 1) ((1 - θ) / (2 - θ) + θ / (1 + θ))) / (n m), N = (n + m) / 2.

    So the interval stays inside [0, 1] and has a width where one group wins every pair. NaN ends
    with fewer than two runs in a group. t is the quantile of Student's distribution with n + m - 2
    degrees of freedom: with the normal one, three runs that always win would exclude θ = 1/2, which
    happens in 10 of 100 pairs of equal groups.

    Source: Newcombe 2006, Statistics in Medicine 25, part 2, method 5; V is that of Hanley &
    McNeil 1982 with N for both sizes.

    Raises:
        ValueError: a group is empty.
    """
    n, m = len(first), len(second)
    if not n or not m:
        raise ValueError(f"expected at least one run in each group, got {n} and {m}")
    estimate = share_won(first, second)
    if min(n, m) < 2:
        return Estimate(estimate, math.nan, math.nan, n + m)
    quantile = student_quantile(n + m - 2, 0.5 + confidence / 2.0)
    low = _end(estimate, 0.0, n, m, quantile)
    high = _end(estimate, 1.0, n, m, quantile)
    return Estimate(estimate, low, high, n + m)


def share_won(first: Float[np.ndarray, " runs"], second: Float[np.ndarray, " others"]) -> float:
    """Return the share of pairs in which the first group's run is higher, ties half."""
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, "left")
    not_above = np.searchsorted(ordered, first, "right")
    return float((below + not_above).sum() / 2.0 / (len(first) * len(second)))


def _end(estimate: float, outermost: float, n: int, m: int, quantile: float) -> float:
    """Return the θ between the estimate and 0 or 1 that many standard errors away.

    (estimate - θ)² - quantile² V(θ) is at most 0 at the estimate and at least 0 at 0 and 1.
    """
    inside, outside = estimate, outermost
    for _ in range(60):
        middle = (inside + outside) / 2.0
        if (estimate - middle) ** 2 <= quantile**2 * _variance(middle, n, m):
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2.0


def _variance(theta: float, n: int, m: int) -> float:
    """Return V(θ) of `probability_of_superiority`."""
    spread = (1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta)
    return theta * (1.0 - theta) * (1.0 + ((n + m) / 2.0 - 1.0) * spread) / (n * m)
