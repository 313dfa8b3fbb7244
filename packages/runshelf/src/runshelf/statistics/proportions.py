"""k of n runs: how large may the probability of success be?"""

import math

from runshelf.statistics.distributions import beta_quantile, normal_quantile
from runshelf.statistics.estimate import CONFIDENCE, Estimate


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Estimate:
    """Return k / n with Wilson's score interval; its coverage is the confidence on average.

    The ends are the p with |k/n - p| = z √(p (1 - p) / n):
    (k + z²/2 ± z √(k (n - k) / n + z²/4)) / (n + z²).

    Source: Wilson 1927, Journal of the American Statistical Association 22.

    Raises:
        ValueError: not 0 ≤ k ≤ n.
    """
    _check(successes, n)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    z = normal_quantile(0.5 + confidence / 2.0)
    centre = successes + z * z / 2.0
    half = z * math.sqrt(successes * (n - successes) / n + z * z / 4.0)
    low = 0.0 if successes == 0 else (centre - half) / (n + z * z)
    high = 1.0 if successes == n else (centre + half) / (n + z * z)
    return Estimate(successes / n, low, high, n)


def clopper_pearson(successes: int, n: int, confidence: float = CONFIDENCE) -> Estimate:
    """Return k / n with the exact interval; its coverage is never below the confidence.

    The ends are the p for which k or more, and k or fewer, successes have probability α / 2: the
    quantiles at α / 2 of Beta(k, n - k + 1) and at 1 - α / 2 of Beta(k + 1, n - k), with
    α = 1 - confidence; 0 for k = 0 and 1 for k = n.

    Source: Clopper & Pearson 1934, Biometrika 26(4).

    Raises:
        ValueError: not 0 ≤ k ≤ n.
    """
    _check(successes, n)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    tail = (1.0 - confidence) / 2.0
    k = float(successes)
    low = beta_quantile(tail, k, n - k + 1.0) if successes > 0 else 0.0
    high = beta_quantile(1.0 - tail, k + 1.0, n - k) if successes < n else 1.0
    return Estimate(successes / n, low, high, n)


def _check(successes: int, n: int) -> None:
    """Refuse counts that are impossible."""
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n, got {successes} successes of {n} runs")
