"""The features of one seed's labelled clips, computed once for each encoder.

A run fits its reward again after each round of labels, and most labels are those of the last fit.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.rewards.interface import LabelledComparison
from backflip.rewards.linear.evidence import Labelled
from backflip.rewards.representations.interface import Inputs

# (comparisons) -> features of their clips and which steps are alive, in the order left, right, ...
ClipFeatures = Callable[
    [Sequence[LabelledComparison]],
    tuple[Float[np.ndarray, "clips L F"], Bool[np.ndarray, "clips L"]],
]


class Steps(NamedTuple):
    """Features of one seed's labelled clips: for each alive step, and summed over each clip.

    Clips 2i and 2i + 1 are the left and the right one of label i.
    """

    alive: Float[np.ndarray, "steps F"]
    sums: Float[np.ndarray, "clips F"]
    clip: Int[np.ndarray, " steps"]
    endless: bool
    left_preferred: Float[np.ndarray, " labels"]

    @property
    def labelled(self) -> Labelled:
        """The differences of the clips, and the labels."""
        return Labelled(self.sums[0::2] - self.sums[1::2], self.left_preferred)


@final
class StepCache:
    """Keeps the features of one seed's labelled clips.

    Args:
        features: F, the number of features.
    """

    def __init__(self, features: int) -> None:
        self._none = np.zeros((0, features), np.float32)
        self._forget(None)

    def _forget(self, inputs: Inputs | None) -> None:
        self._inputs = inputs  # what the kept features are computed with
        self._queries: list[int] = []
        self._rows = self._none  # of alive steps; more than are used, so that few copies are made
        self._sums, self._alive = self._none, np.zeros((0, 0), bool)

    def steps(
        self,
        inputs: Inputs,
        comparisons: Sequence[LabelledComparison],
        features_of: ClipFeatures,
    ) -> Steps:
        """Return the features of the labels' clips.

        Args:
            inputs: what features are computed with. If it is another object than in the last call,
                or if the labels do not begin with those of the last call, nothing is kept.
            comparisons: the labels.
            features_of: computes the features of some labels' clips.
        """
        preferred = np.array([one.left_preferred for one in comparisons])
        if not comparisons:  # one step with features of zero gives a reward of zero
            one = np.zeros_like(self._none, shape=(1, self._none.shape[1]))
            return Steps(one, self._none, np.zeros(1, int), True, preferred)
        queries = [one.query for one in comparisons]
        known = len(self._queries)
        if inputs is not self._inputs or queries[:known] != self._queries:
            self._forget(inputs)
            known = 0
        if known < len(queries):
            self._append(*features_of(comparisons[known:]))
            self._queries = queries
        clip = np.nonzero(self._alive)[0]
        endless = bool(self._alive.all())
        return Steps(self._rows[: len(clip)], self._sums, clip, endless, preferred)

    def _append(
        self, every: Float[np.ndarray, "clips L F"], alive: Bool[np.ndarray, "clips L"]
    ) -> None:
        """Add clips."""
        used, more = int(self._alive.sum()), int(alive.sum())
        if used + more > len(self._rows):
            rows = np.empty_like(self._none, shape=(used + 2 * more, every.shape[-1]))
            rows[:used] = self._rows[:used]
            self._rows = rows
        self._rows[used : used + more] = every[alive]
        sums = (alive[:, None].astype(np.float32) @ every)[:, 0]
        self._sums = np.concatenate([self._sums, sums])
        self._alive = np.concatenate([self._alive, alive]) if len(self._alive) else alive
