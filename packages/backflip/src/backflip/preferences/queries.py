"""Choice of the two clips of each query. Needs no JAX."""

import numpy as np
from jaxtyping import Float, Int

CANDIDATES = 10  # candidate pairs for each query, as in arXiv:1706.03741, section 2.2.4


def uniform_pairs(rng: np.random.Generator, clips: int, count: int) -> Int[np.ndarray, "count 2"]:
    """Return `count` uniformly drawn pairs of different clips, as indices below `clips`."""
    left = rng.integers(clips, size=count)
    right = (left + rng.integers(1, clips, size=count)) % clips
    return np.stack([left, right], axis=1)


def most_disputed(
    clip_returns: Float[np.ndarray, "clips members"],
    pairs: Int[np.ndarray, "candidates 2"],
    count: int,
) -> Int[np.ndarray, "count 2"]:
    """Return the pairs on which the members disagree most.

    Disagreement is the variance over members of σ(R_left - R_right).

    Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2.4.

    Args:
        clip_returns: R, each member's sum of predicted rewards over each clip.
        pairs: candidate pairs, as indices of clips.
        count: the number of pairs to return.
    """
    margin = clip_returns[pairs[:, 0]] - clip_returns[pairs[:, 1]]
    disputed = (1.0 / (1.0 + np.exp(-np.clip(margin, -50, 50)))).var(axis=1)
    return pairs[np.argsort(-disputed, kind="stable")[:count]]
