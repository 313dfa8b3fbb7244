"""Student's and the beta distribution, without scipy.

Both rest on the regularised incomplete beta function I_x(a, b), computed by its continued fraction.
"""

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

from runshelf.statistics.estimate import CONFIDENCE

_HALVINGS = 200
_TERMS = 100_000
_SMALL = 1e-300


def normal_quantile(probability: float) -> float:
    """Return the value below which a standard normal number is with this probability."""
    return NormalDist().inv_cdf(probability)


@functools.lru_cache(maxsize=4096)
def student_quantile(freedom: float, probability: float = 0.5 + CONFIDENCE / 2) -> float:
    """Return a quantile of Student's distribution, by bisection of the cumulative distribution.

    Args:
        freedom: degrees of freedom ν, above 0; not only whole numbers, which Welch's test needs.
        probability: the probability of a smaller value, at least 0.5 and below 1.
    """
    high = 1.0
    while student_below(high, freedom) < probability and high < 1e300:
        high *= 2.0
    return _bisected(lambda x: student_below(x, freedom) < probability, 0.0, high)


def student_below(value: float, freedom: float) -> float:
    """Return P(T ≤ t) for t ≥ 0 and ν degrees of freedom, 1 - I_x(ν/2, 1/2) / 2.

    x = ν / (ν + t²).

    Source: Abramowitz & Stegun 1964, 26.5.27.
    """
    return 1.0 - incomplete_beta(freedom / (freedom + value * value), freedom / 2.0, 0.5) / 2.0


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the x in [0, 1] with I_x(a, b) = probability, by bisection."""
    return _bisected(lambda x: incomplete_beta(x, a, b) < probability, 0.0, 1.0)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), for x in [0, 1] and a, b > 0.

    I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) · 1 / (1 + d_1 / (1 + d_2 / (1 + ...))). It converges
    fast below x = (a + 1) / (a + b + 2); above, I_x(a, b) = 1 - I_(1-x)(b, a).

    Source: DLMF 8.17.22.
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(1.0 - x, b, a)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Return 1 / (1 + d_1 / (1 + d_2 / ...)) of `incomplete_beta`.

    d_2m = m (b - m) x / ((a + 2m - 1)(a + 2m)),
    d_(2m+1) = -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)).

    Source: Lentz 1976, Applied Optics 15(3), with Thompson's and Barnett's guard against zeros.
    """
    value = upper = 1.0
    lower = 0.0
    for k in range(1, _TERMS):
        m = k // 2
        d = m * (b - m) if k % 2 == 0 else -(a + m) * (a + b + m)
        d *= x / ((a + k - 1.0) * (a + k))
        lower = 1.0 / ((1.0 + d * lower) or _SMALL)
        upper = (1.0 + d / upper) or _SMALL
        value *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return 1.0 / value


def _bisected(is_below: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a falling condition changes, to the last bit."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2.0
