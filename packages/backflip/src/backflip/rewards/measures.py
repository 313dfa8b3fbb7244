"""Scaling of a reward and metrics of a fit, shared by all reward models."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

LARGEST_REWARD = 3.0  # in standard deviations
SMALLEST_SPREAD = 1e-8


class Scale(NamedTuple):
    """r = (x - offset) / spread."""

    offset: Float[np.ndarray, " M"]
    spread: Float[np.ndarray, " M"]


def scale_of(values: Float[np.ndarray, "steps M"], endless: bool) -> Scale:
    """Return the offset and scale of the rewards of all alive steps, for each of M models.

    Usually the scaled reward has mean 0 and standard deviation 1 (arXiv:1706.03741, section
    2.2.3): between clips of equal length a constant cancels, so preferences do not determine it.
    If a clip contains the end of an episode, the constant does not cancel, because later steps
    have a reward of zero. Then nothing is subtracted, and the root mean square is scaled to 1.

    Args:
        values: rewards before scaling.
        endless: no labelled clip contains the end of an episode.
    """
    if endless:
        offset, spread = values.mean(0), values.std(0)
    else:
        offset, spread = np.zeros_like(values[0]), np.sqrt(np.square(values).mean(0))
    return Scale(offset, np.maximum(spread, SMALLEST_SPREAD))


def label_metrics(
    margin: Float[np.ndarray, "n M"],
    left_preferred: Float[np.ndarray, " n"],
    held_out: Bool[np.ndarray, "n M"],
) -> dict[str, float]:
    """Return how well members agree with the labels and with each other.

    Args:
        margin: each member's predicted return of the left clip minus that of the right clip.
        left_preferred: 1 left, 0 right, ½ tie.
        held_out: true where the member was not fitted to the label.
    """
    decided = left_preferred != 0.5
    right = (margin > 0) == (left_preferred[:, None] > 0.5)
    return {
        "reward_model_labels": float(len(margin)),
        "reward_model_ties": float((~decided).sum()),
        "reward_model_accuracy": _mean(right[decided]),
        "reward_model_held_out_accuracy": _mean(right[held_out & decided[:, None]]),
        "reward_model_disagreement": _mean(np.std(np.sign(margin), axis=1)),
    }


def reward_metrics(reward: Float[np.ndarray, " steps"]) -> dict[str, float]:
    """Return mean, standard deviation and range of a reward over all alive steps, unclipped."""
    return {
        "reward_model_mean": float(reward.mean()),
        "reward_model_std": float(reward.std()),
        "reward_model_min": float(reward.min()),
        "reward_model_max": float(reward.max()),
    }


def _mean(numbers: Shaped[np.ndarray, "..."]) -> float:
    return float(numbers.mean()) if numbers.size else float("nan")
