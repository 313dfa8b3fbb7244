"""Runs drawn with replacement inside each environment: the stratified bootstrap."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from runshelf.statistics.estimate import CONFIDENCE
from runshelf.statistics.scores import Scores

RESAMPLES = 2_000
# Fixed, so that the same scores always give the same figure.
SEED = 0


def resampled(
    scores: Scores, seed: int = SEED, resamples: int = RESAMPLES
) -> Mapping[str, Float[np.ndarray, "resamples _"]]:
    """Return resamples of the runs of each environment, drawn independently of each other."""
    rng = np.random.default_rng(seed)
    return {
        name: runs[rng.integers(len(runs), size=(resamples, len(runs)))]
        for name, runs in scores.runs.items()
    }


def percentile_ends(
    drawn: Float[np.ndarray, "resamples ..."], confidence: float = CONFIDENCE
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Return the ends between which the middle 95 % of the resamples are."""
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(drawn, (tail, 100.0 - tail), axis=0)
    return low, high
