"""The numbers of a comparison: intervals, tests, and statistics across environments.

The one place where a comparison calls statistics. Values are one number for each seed.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import numpy as np

from runshelf.comparison.result import Span
from runshelf.statistics import mean_interval, student_quantile

RESAMPLES = 2_000
MOST_EXACT = 20_000  # permutations; of more, so many are drawn

_SEED = 0  # fixed, so that the same values always give the same numbers
_NORMAL = 1.959963984540054  # quantile of the normal distribution at .975

Values = Sequence[float]


def mean(values: Values) -> Span:
    """Return the mean with Student's 95 % interval."""
    found = mean_interval(np.array(values, np.float64)[:, None])
    return Span(float(found.centre[0]), float(found.low[0]), float(found.high[0]))


def share(successes: int, n: int) -> Span:
    """Return a share with Wilson's 95 % interval.

    (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), with p = successes / n.
    """
    p, z = successes / n, _NORMAL
    middle, scale = p + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Span(p, max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale))


def difference(one: Values, other: Values) -> Span:
    """Return the difference of two means with Welch's 95 % interval.

    x̄ - ȳ ± t(ν) √(s²/n + r²/m), ν rounded down. No interval if a side has one value, or all values
    of both sides are the same.
    """
    value = float(np.mean(one) - np.mean(other))
    if min(len(one), len(other)) < 2:
        return Span(value, math.nan, math.nan)
    error, freedom = _welch(one, other)
    if not error:
        return Span(value, math.nan, math.nan)
    half = student_quantile(max(1, int(freedom))) * error
    return Span(value, value - half, value + half)


def welch_p(one: Values, other: Values) -> float:
    """Return the two-sided p-value of Welch's t-test; NaN if it has no error to compare with."""
    if min(len(one), len(other)) < 2:
        return math.nan
    error, freedom = _welch(one, other)
    if not error:
        return math.nan
    size = abs(float(np.mean(one) - np.mean(other))) / error
    low, high = 0.5, 1.0 - 1e-12
    for _ in range(60):  # inverts the quantile
        middle = (low + high) / 2
        if student_quantile(max(1, int(freedom)), middle) < size:
            low = middle
        else:
            high = middle
    return 2 * (1 - low)


def permutation_p(one: Values, other: Values) -> float:
    """Return the two-sided p-value of the permutation test of the difference of means.

    The share of the ways to divide the values into sides of these sizes whose difference is at
    least as large: of all ways, or of `MOST_EXACT` random ones and the observed one.
    """
    values, n = np.array([*one, *other], np.float64), len(one)
    total, m = float(values.sum()), len(values) - n
    seen = abs(float(values[:n].sum()) / n - float(values[n:].sum()) / m)
    ways = math.comb(len(values), n)
    if ways <= MOST_EXACT:
        chosen = np.array(list(itertools.combinations(range(len(values)), n)))
        sums = values[chosen].sum(1)
    else:
        rng = np.random.default_rng(_SEED)
        order = rng.permuted(np.tile(values, (MOST_EXACT, 1)), axis=1)
        sums = np.append(order[:, :n].sum(1), values[:n].sum())
    apart = np.abs(sums / n - (total - sums) / m)
    return float((apart >= seen - 1e-9 * max(seen, 1e-300)).mean())


def improvement(one: Values, other: Values) -> Span:
    """Return P(X > Y) + P(X = Y) / 2 with a 95 % percentile bootstrap interval over seeds."""
    wins = _wins(np.array(one), np.array(other))
    if min(len(one), len(other)) < 2:
        return Span(float(wins.mean()), math.nan, math.nan)
    rng = np.random.default_rng(_SEED)
    rows = rng.integers(len(one), size=(RESAMPLES, len(one)))
    columns = rng.integers(len(other), size=(RESAMPLES, len(other)))
    drawn = wins[rows[:, :, None], columns[:, None, :]].mean((1, 2))
    return Span(float(wins.mean()), *map(float, np.percentile(drawn, (2.5, 97.5))))


def holm(values: Values) -> list[float]:
    """Return p-values corrected by Holm's step-down procedure, in the same order."""
    order = np.argsort(values, kind="stable").tolist()
    found, largest = [0.0] * len(values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, values[at] * (len(values) - rank)))
        found[at] = largest
    return found


@final
class Pooled(NamedTuple):
    """Statistics of the scores of several environments.

    Attributes:
        iqm: the interquartile mean over runs and environments.
        mean: the mean over environments.
        profile: the share of runs with a score above each tau, with its interval.
    """

    iqm: Span
    mean: Span
    profile: tuple[np.ndarray, np.ndarray, np.ndarray]


def pooled(scores: Sequence[Values], taus: np.ndarray) -> Pooled:
    """Return statistics of the scores of one side, with intervals stratified by environment.

    Each environment has the same weight. Seeds are drawn with replacement within environments.

    Args:
        scores: the scores of the seeds of each environment.
        taus: ascending scores.
    """
    rows = [np.array(of, np.float64) for of in scores]
    rng = np.random.default_rng(_SEED)
    draws = [of[rng.integers(len(of), size=(RESAMPLES, len(of)))] for of in rows]
    weights = np.concatenate([np.full(len(of), 1 / len(of)) for of in rows])
    drawn, seen = np.concatenate(draws, axis=1), np.concatenate(rows)[None]

    def estimate(of: Callable[[np.ndarray], np.ndarray]) -> Span:
        low, high = np.percentile(of(drawn), (2.5, 97.5))
        return Span(float(of(seen)[0]), float(low), float(high))

    above = np.stack([((drawn > tau) * weights).sum(1) / len(rows) for tau in taus])
    observed = np.array([float(((seen > tau) * weights).sum()) / len(rows) for tau in taus])
    low, high = np.percentile(above, (2.5, 97.5), axis=1)
    return Pooled(
        estimate(lambda values: _weighted_iqm(values, weights)),
        estimate(lambda values: (values * weights).sum(1) / len(rows)),
        (observed, low, high),
    )


def pooled_improvement(one: Sequence[Values], other: Sequence[Values]) -> Span:
    """Return P(X > Y) averaged over environments, with a stratified bootstrap interval."""
    rng = np.random.default_rng(_SEED)
    values: list[float] = []
    drawn = np.zeros(RESAMPLES)
    for a, b in zip(one, other, strict=True):
        wins = _wins(np.array(a), np.array(b))
        values.append(float(wins.mean()))
        rows = rng.integers(len(a), size=(RESAMPLES, len(a)))
        columns = rng.integers(len(b), size=(RESAMPLES, len(b)))
        drawn += wins[rows[:, :, None], columns[:, None, :]].mean((1, 2)) / len(one)
    return Span(float(np.mean(values)), *map(float, np.percentile(drawn, (2.5, 97.5))))


def _welch(one: Values, other: Values) -> tuple[float, float]:
    """Return the standard error of a difference and its degrees of freedom."""
    u, v = (float(np.var(of, ddof=1)) / len(of) for of in (one, other))
    if not u + v:
        return 0.0, 1.0
    return math.sqrt(u + v), (u + v) ** 2 / (u * u / (len(one) - 1) + v * v / (len(other) - 1))


def _wins(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one[:, None] > other[None]) + 0.5 * (one[:, None] == other[None])


def _weighted_iqm(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean of the middle half of the weight of each row."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered, mass = np.take_along_axis(values, order, 1), weights[order] / weights.sum()
    end = mass.cumsum(1)
    inside = (np.minimum(end, 0.75) - np.maximum(end - mass, 0.25)).clip(0.0)
    return (ordered * inside).sum(1) / inside.sum(1)
