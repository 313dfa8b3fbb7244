"""Scaling of a reward and metrics of a fit, shared by all reward models."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

LARGEST_REWARD = 3.0  # in standard deviations
LARGEST_SPARSE = 1.5  # in median differences of decided labels
DEAD_ZONES = (2.0, 1.0, 0.0)  # candidates of `sparse_scale`, in standard deviations
ACCURACY_LOST = 0.02  # most accuracy on held-out labels that a dead zone may cost
LEAST_ACCURACY = 0.65  # with less, members order labels nearly by chance: no dead zone
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


class SparseScale(NamedTuple):
    """r = soft(x - centre) / unit, soft(y) = y - clip(y, -dead_zone, dead_zone)."""

    centre: float
    dead_zone: float
    unit: float


class Labels(NamedTuple):
    """The labels of one seed, for the scale of a sparse reward.

    Attributes:
        clip: the clip of each alive step; clips 2i and 2i + 1 are the left and right one of label
            i.
        left_preferred: 1 left, 0 right, ½ tie.
    """

    clip: Int[np.ndarray, " steps"]
    left_preferred: Float[np.ndarray, " n"]


def sparse_scale(
    values: Float[np.ndarray, " steps"],
    of_members: Float[np.ndarray, "steps M"],
    held_out: Bool[np.ndarray, "n M"],
    labels: Labels,
) -> SparseScale:
    """Return the scale of a reward that is the same in most steps, such as a game's score.

    Most steps show nothing that is rewarded, and what the fit gives them is noise. The centre is
    the median. What is within `dead_zone` of it counts as nothing: two standard deviations, or
    fewer if members would then order fewer held-out labels rightly, or too few. The unit is the
    median difference between the two clips of a decided label. The centre is subtracted even if
    clips contain the end of an episode: what it is worth to go on is a small number for each step,
    which labels determine badly, and a long game has many steps.

    Args:
        values: rewards of all alive steps before scaling.
        of_members: the same of each member.
        held_out: true where the member was not fitted to the label.
        labels: the labels.
    """
    plain = _held_out_accuracy(of_members, held_out, labels, 0.0)
    least = max(plain - ACCURACY_LOST, LEAST_ACCURACY)
    zones = (
        zone
        for zone in DEAD_ZONES
        if _held_out_accuracy(of_members, held_out, labels, zone) >= least
    )
    zone = next(zones, 0.0)
    centre, deviation = float(np.median(values)), float(values.std())
    decided = labels.left_preferred != 0.5
    margins = np.abs(_margins(values, labels, zone)[decided])
    unit = float(np.median(margins)) if len(margins) else 0.0
    if unit <= SMALLEST_SPREAD:
        unit = max(deviation, SMALLEST_SPREAD)
    return SparseScale(centre, zone * deviation, unit)


def _held_out_accuracy(
    of_members: Float[np.ndarray, "steps M"],
    held_out: Bool[np.ndarray, "n M"],
    labels: Labels,
    zone: float,
) -> float:
    """Return the share of decided held-out labels in the right order; no difference is a half."""
    margins = np.stack([_margins(x, labels, zone) for x in of_members.T], 1)
    right = _right(margins, labels.left_preferred)
    used = held_out & (labels.left_preferred != 0.5)[:, None]
    return float(right[used].mean()) if used.any() else 0.0


def _right(
    margins: Float[np.ndarray, "n M"], left_preferred: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n M"]:
    """Return 1 where a margin has the sign of the label, 0 where it has the other, else a half."""
    return 0.5 + 0.5 * np.sign(margins) * np.sign(left_preferred - 0.5)[:, None]


def _margins(
    values: Float[np.ndarray, " steps"], labels: Labels, zone: float
) -> Float[np.ndarray, " n"]:
    """Return the returns of left minus right clips, with a dead zone in standard deviations."""
    centre, width = np.median(values), zone * values.std()
    soft = values - centre - np.clip(values - centre, -width, width)
    returns = np.bincount(labels.clip, soft, 2 * len(labels.left_preferred))
    return returns[0::2] - returns[1::2]


def label_metrics(
    margin: Float[np.ndarray, "n M"],
    left_preferred: Float[np.ndarray, " n"],
    held_out: Bool[np.ndarray, "n M"],
) -> dict[str, float]:
    """Return how well members agree with the labels and with each other.

    A margin of 0 is right for half of a label, and one that is not a number makes a share NaN.

    Args:
        margin: each member's predicted return of the left clip minus that of the right clip.
        left_preferred: 1 left, 0 right, ½ tie.
        held_out: true where the member was not fitted to the label.
    """
    decided = left_preferred != 0.5
    right = _right(margin, left_preferred)
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
