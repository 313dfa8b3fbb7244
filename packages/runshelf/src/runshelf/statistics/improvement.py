"""The probability that one group's run beats the other's, averaged over environments."""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from runshelf.statistics.estimate import Estimate
from runshelf.statistics.resampling import RESAMPLES, SEED, percentile_ends
from runshelf.statistics.scores import Scores
from runshelf.statistics.superiority import share_won


def probability_of_improvement(first: Scores, second: Scores, seed: int = SEED) -> Estimate:
    """Return the mean over environments of P(X > Y), ties half, with a stratified bootstrap.

    Runs of both groups are drawn with replacement inside each environment. NaN ends if a group has
    a single run on an environment.

    Source: Agarwal et al. 2021, arXiv:2108.13264, section 4.3.

    Raises:
        ValueError: the groups were not run on the same environments.
    """
    _check_same_environments(first, second)
    pairs = [(first.runs[name], second.runs[name]) for name in first.environments]
    value = float(np.mean([share_won(x, y) for x, y in pairs]))
    n = first.n + second.n
    if min(min(len(x), len(y)) for x, y in pairs) < 2:
        return Estimate(value, math.nan, math.nan, n)
    rng = np.random.default_rng(seed)
    low, high = percentile_ends(np.mean(list(_drawn(pairs, rng)), axis=0))
    return Estimate(value, float(low), float(high), n)


def _drawn(
    pairs: list[tuple[Float[np.ndarray, " runs"], Float[np.ndarray, " others"]]],
    rng: np.random.Generator,
) -> Iterator[Float[np.ndarray, " resamples"]]:
    """Yield each environment's share of pairs won, in all resamples.

    A resample is how often each run was drawn, so the share is one product of matrices.
    """
    for x, y in pairs:
        won = (x[:, None] > y) + (x[:, None] == y) / 2.0
        counts, others = _counts(len(x), rng), _counts(len(y), rng)
        yield ((counts @ won) * others).sum(axis=1) / (len(x) * len(y))


def _counts(runs: int, rng: np.random.Generator) -> Float[np.ndarray, "resamples runs"]:
    """Return how often each run is drawn in each resample."""
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), size=RESAMPLES).astype(float)


def _check_same_environments(first: Scores, second: Scores) -> None:
    """Refuse groups of different environments."""
    different = sorted(set(first.environments) ^ set(second.environments))
    if different:
        raise ValueError(
            f"only one of the groups has runs on {', '.join(different)}: compare the groups on "
            "environments that both have"
        )
