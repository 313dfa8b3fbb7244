"""One number for a group on several environments, with stratified bootstrap intervals.

Scores should be normalised first. With few runs the percentile bootstrap is too narrow: see
docs/statistics.md. Definitions are those of Agarwal et al. 2021, arXiv:2108.13264.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.statistics.estimate import Estimate
from runshelf.statistics.resampling import SEED, percentile_ends, resampled
from runshelf.statistics.scores import Scores

# Sets of scores of all environments, one set a row: the scores themselves or resamples of them.
Sets = Mapping[str, Float[np.ndarray, "sets _"]]
Aggregate = Callable[[Sets], Float[np.ndarray, " sets"]]


def interquartile_mean(sets: Sets) -> Float[np.ndarray, " sets"]:
    """Return the mean of the middle half of all runs of all environments.

    ⌊N / 4⌋ runs are removed at each end, N the number of all runs.
    """
    pooled = np.sort(_pooled(sets), axis=1)
    cut = pooled.shape[1] // 4
    return pooled[:, cut : pooled.shape[1] - cut].mean(axis=1)


def mean(sets: Sets) -> Float[np.ndarray, " sets"]:
    """Return the mean of the environments' means."""
    return _environment_means(sets).mean(axis=1)


def median(sets: Sets) -> Float[np.ndarray, " sets"]:
    """Return the median of the environments' means."""
    return np.median(_environment_means(sets), axis=1)


def optimality_gap(sets: Sets) -> Float[np.ndarray, " sets"]:
    """Return by how much runs miss a score of 1, 1 - mean(min(score, 1)) over all runs."""
    return 1.0 - np.minimum(_pooled(sets), 1.0).mean(axis=1)


AGGREGATES: Mapping[str, Aggregate] = {
    "iqm": interquartile_mean,
    "mean": mean,
    "median": median,
    "optimality_gap": optimality_gap,
}


def estimate(scores: Scores, aggregate: Aggregate, seed: int = SEED) -> Estimate:
    """Return an aggregate of a group, with an interval unless an environment has a single run."""
    value = float(aggregate({name: runs[None] for name, runs in scores.runs.items()})[0])
    if min(len(runs) for runs in scores.runs.values()) < 2:
        return Estimate(value, math.nan, math.nan, scores.n)
    low, high = percentile_ends(aggregate(resampled(scores, seed)))
    return Estimate(value, float(low), float(high), scores.n)


@final
class Profile(NamedTuple):
    """A performance profile: the share of runs above each threshold.

    Attributes:
        thresholds: the thresholds τ.
        share: the share of all runs of all environments with a score above τ.
        low: the lower end of the pointwise interval; NaN if an environment has a single run.
        high: the upper end.
    """

    thresholds: Float[np.ndarray, " thresholds"]
    share: Float[np.ndarray, " thresholds"]
    low: Float[np.ndarray, " thresholds"]
    high: Float[np.ndarray, " thresholds"]


def performance_profile(
    scores: Scores, thresholds: Float[np.ndarray, " thresholds"], seed: int = SEED
) -> Profile:
    """Return the share of runs above each threshold, the run-score distribution."""
    thresholds = np.asarray(thresholds, float)
    share = _above(_pooled({name: runs[None] for name, runs in scores.runs.items()}), thresholds)
    if min(len(runs) for runs in scores.runs.values()) < 2:
        nothing = np.full(len(thresholds), math.nan)
        return Profile(thresholds, share[0], nothing, nothing)
    low, high = percentile_ends(_above(_pooled(resampled(scores, seed)), thresholds))
    return Profile(thresholds, share[0], low, high)


def _above(
    pooled: Float[np.ndarray, "sets pooled"], thresholds: Float[np.ndarray, " thresholds"]
) -> Float[np.ndarray, "sets thresholds"]:
    """Return the share of each set that is above each threshold."""
    below = [np.searchsorted(row, thresholds, "right") for row in np.sort(pooled, axis=1)]
    return 1.0 - np.array(below) / pooled.shape[1]


def _pooled(sets: Sets) -> Float[np.ndarray, "sets pooled"]:
    """Return the runs of all environments side by side."""
    return np.concatenate(list(sets.values()), axis=1)


def _environment_means(sets: Sets) -> Float[np.ndarray, "sets environments"]:
    """Return the mean of each environment's runs."""
    return np.stack([runs.mean(axis=1) for runs in sets.values()], axis=1)
