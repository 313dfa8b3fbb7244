"""Which pairs of clips a person can tell apart, and which are of one stage of an episode."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.preferences.clips import Clip

LEAST_DISTANCE = 0.1  # in standard deviations; those of two random clips are about 1.4 apart
UNKNOWN = -1  # the env step at which a clip begins, if its episode began before the record


class Distinctness:
    """Compares what is seen in clips.

    The distance of two clips is the root of the mean, over time and numbers of the observation,
    of the squared difference in units of each number's standard deviation over all clips. Pictures
    have one unit for all pixels. That a clip contains the end of an episode counts like one more
    number, since people are told.

    Args:
        clips: all candidates; their observations determine the units.
    """

    def __init__(self, clips: Sequence[Clip]) -> None:
        self._clips = clips
        pictures = clips[0].obs.ndim > 2
        # Of pictures the first of each clip, to save memory.
        some = np.stack([clip.obs[:1] if pictures else clip.obs for clip in clips])
        variance = some.astype(np.float64).var((0, 1))
        self._variance = np.maximum(variance.mean() if pictures else variance, 1e-12)

    def distances(self, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, " pairs"]:
        """Return the distance of the two clips of each pair."""
        return np.array([self._distance(self._clips[i], self._clips[j]) for i, j in pairs])

    def can_be_told_apart(self, pairs: Int[np.ndarray, "pairs 2"]) -> Bool[np.ndarray, " pairs"]:
        """Return for each pair whether its clips differ in what is seen."""
        return self.distances(pairs) >= LEAST_DISTANCE

    def _distance(self, one: Clip, other: Clip) -> float:
        # The observations after each step, so that the last state is seen, too.
        apart = np.square(one.next_obs.astype(np.float32) - other.next_obs) / self._variance
        return float(np.sqrt(apart.mean() + (one.alive != other.alive).mean()))


def one_stage(
    begins: Int[np.ndarray, " clips"], stages: int, pairs: Int[np.ndarray, "pairs 2"]
) -> Bool[np.ndarray, " pairs"]:
    """Return for each pair whether its clips are of one stage of an episode.

    The clips with a known beginning, in order, are cut into `stages` equal parts. A clip whose
    beginning is unknown may be compared with any.

    Args:
        begins: the env step of its episode at which each clip begins, or `UNKNOWN`.
        stages: how many parts.
        pairs: indices of clips.
    """
    known = np.sort(begins[begins != UNKNOWN])
    if stages == 1 or not len(known):
        return np.ones(len(pairs), bool)
    edges = known[[len(known) * stage // stages for stage in range(1, stages)]]
    stage = np.where(begins == UNKNOWN, UNKNOWN, np.searchsorted(edges, begins, side="right"))
    left, right = stage[pairs[:, 0]], stage[pairs[:, 1]]
    return (left == right) | (left == UNKNOWN) | (right == UNKNOWN)
