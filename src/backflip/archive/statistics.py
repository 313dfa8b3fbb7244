"""Means over seeds, and the intervals that say how little a few seeds tell.

Seeds of a group are few, mostly three to twenty. The interval of a mean is Student's; that of an
interquartile mean is a percentile bootstrap over seeds. Neither is the mean and 1.96 standard
errors, which for five seeds holds the truth in 88 rather than 95 of 100 cases.
"""

import functools
import math
from typing import Literal, NamedTuple, final

import numpy as np
from jaxtyping import Float

Centre = Literal["mean", "iqm"]

CONFIDENCE = 0.95
RESAMPLES = 400
# Drawn anew for every picture, the same picture must come out.
_RESAMPLING_SEED = 0


@final
class Interval(NamedTuple):
    """A centre over seeds with its interval, at each of several places along an axis.

    Attributes:
        centre: the mean or interquartile mean of the seeds that have a value; NaN where none has.
        low: the lower end of the interval; NaN where fewer than two seeds have a value.
        high: the upper end.
        seeds: how many seeds have a value.
    """

    centre: Float[np.ndarray, " places"]
    low: Float[np.ndarray, " places"]
    high: Float[np.ndarray, " places"]
    seeds: Float[np.ndarray, " places"]


def interval(values: Float[np.ndarray, "seeds places"], centre: Centre) -> Interval:
    """Return the centre over seeds with its 95 % interval; NaN stands for "this seed has none"."""
    return mean_interval(values) if centre == "mean" else iqm_interval(values)


def mean_interval(values: Float[np.ndarray, "seeds places"]) -> Interval:
    """Return means with Student's interval, mean ± t(n - 1) s / √n.

    s is the sample standard deviation (divided by n - 1), t(n - 1) the quantile at .975 of
    Student's distribution with n - 1 degrees of freedom; n counts the seeds that have a value.

    Source: Student 1908, "The probable error of a mean", Biometrika 6(1).
    """
    there = np.isfinite(values)
    count = there.sum(axis=0).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, values, 0.0).sum(axis=0) / count
        deviations = np.where(there, values - mean, 0.0)
        variance = (deviations**2).sum(axis=0) / (count - 1.0)
        half = _student(count) * np.sqrt(variance / count)
    half = np.where(count > 1, half, np.nan)
    return Interval(np.where(count > 0, mean, np.nan), mean - half, mean + half, count)


def iqm_interval(values: Float[np.ndarray, "seeds places"]) -> Interval:
    """Return interquartile means with the 2.5 % and 97.5 % percentiles of resampled ones.

    Seeds are drawn with replacement as whole curves, so that a seed counts the same at every
    place. Below ten seeds such an interval is too narrow; who shows it should say so.

    Source: Agarwal et al. 2021, arXiv:2108.13264, section 4; the strata there are tasks, and a
    group has one.
    """
    count = np.isfinite(values).sum(axis=0).astype(float)
    seeds = len(values)
    if seeds < 2:
        nothing = np.full(values.shape[1], np.nan)
        return Interval(interquartile_mean(values), nothing, nothing, count)
    draws = np.random.default_rng(_RESAMPLING_SEED).integers(seeds, size=(RESAMPLES, seeds))
    means = np.stack([interquartile_mean(values[draw]) for draw in draws])
    there = np.isfinite(means).any(axis=0) & (count > 1)
    low, high = np.full((2, values.shape[1]), np.nan)
    tail = 50.0 * (1.0 - CONFIDENCE)
    if there.any():
        low[there], high[there] = np.nanpercentile(means[:, there], (tail, 100.0 - tail), axis=0)
    return Interval(interquartile_mean(values), low, high, count)


def interquartile_mean(values: Float[np.ndarray, "seeds places"]) -> Float[np.ndarray, " places"]:
    """Return the mean of what is left when ⌊n/4⌋ values are cut off at either end.

    n counts the seeds that have a value at a place; with fewer than four it is the plain mean.
    """
    ordered = np.sort(np.where(np.isfinite(values), values, np.inf), axis=0)
    count = np.isfinite(ordered).sum(axis=0)
    cut = count // 4
    rank = np.arange(len(values))[:, None]
    kept = (rank >= cut) & (rank < count - cut)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(kept, np.where(kept, ordered, 0.0), 0.0).sum(axis=0) / kept.sum(axis=0)


@functools.cache
def student_quantile(freedom: int, probability: float = 0.5 + CONFIDENCE / 2) -> float:
    """Return the quantile of Student's distribution, by bisection of its cumulative distribution.

    Args:
        freedom: degrees of freedom, at least 1.
        probability: of a smaller value, above a half and below 1.
    """
    low, high = 0.0, 1.0
    while _student_below(high, freedom) < probability:
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if _student_below(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _student(count: Float[np.ndarray, " places"]) -> Float[np.ndarray, " places"]:
    table = {n: student_quantile(int(n) - 1) if n > 1 else math.nan for n in np.unique(count)}
    return np.array([table[n] for n in count])


def _student_below(value: float, freedom: int) -> float:
    """Return P(T ≤ value) for value ≥ 0: 1 - I_x(ν/2, 1/2) / 2 with x = ν / (ν + value²)."""
    share = freedom / (freedom + value * value)
    return 1.0 - 0.5 * incomplete_beta(share, freedom / 2.0, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b).

    By its continued fraction, where that converges fast, else by I_x(a, b) = 1 - I_{1-x}(b, a).

    Source: DLMF 8.17.22 and 8.17.4.
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(1.0 - x, b, a)
    log_factor = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_factor += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_factor) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """Return 1 + d_1/(1 + d_2/(1 + ...)) of DLMF 8.17.22, from the innermost term outwards."""
    value = 1.0
    for step in range(300, 0, -1):
        m = step // 2
        if step % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1.0 + d / value
    return value
