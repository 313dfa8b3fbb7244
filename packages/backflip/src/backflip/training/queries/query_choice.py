"""Chooses the pairs of clips of a round of queries by the method of the settings."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Int

from backflip.preferences.clips import Clip, observed
from backflip.preferences.distinctness import Distinctness, one_stage
from backflip.preferences.queries import (
    CANDIDATES,
    answer_information,
    farthest_first,
    most_disputed,
    most_informative,
    most_informative_of_members,
    posterior_covariance,
    redrawn,
    uniform_pairs,
)
from backflip.rewards.interface import (
    Embedding,
    EmbedsClips,
    LabelledComparison,
    ObservedClip,
    RewardModel,
)
from backflip.training.teaching.config import TeachConfig

Pairs = Int[np.ndarray, "pairs 2"]


class Known(NamedTuple):
    """What is known about one seed's reward.

    Attributes:
        row: the row of the seed in the parameters.
        reward: the seed's parameters.
        comparisons: the labels that they were fitted to.
        tie_width: θ of `backflip.core.losses.answer_probabilities`; 0 without ties.
    """

    row: int
    reward: Any
    comparisons: Sequence[LabelledComparison] = ()
    tie_width: float = 0.0


@final
class QueryChoice:
    """Chooses pairs of clips.

    Candidates are uniform pairs that a person can tell apart, and of one stage of an episode if
    there are several stages.

    Args:
        model: predicts the reward of clips.
        config: `queries` and `stages` of teaching.
    """

    def __init__(self, model: RewardModel, config: TeachConfig) -> None:
        self._model, self._config = model, config

    def choose(
        self,
        rng: np.random.Generator,
        clips: Sequence[Clip],
        begins: Int[np.ndarray, " clips"],
        known: Known | None,
        count: int,
    ) -> Int[np.ndarray, "count 2"]:
        """Return `count` pairs, as indices of clips.

        Args:
            rng: draws the candidates.
            clips: at least two clips.
            begins: the env step of its episode at which each clip begins, or -1.
            known: about the reward; None before the first labels, when pairs are uniform.
            count: the number of pairs.
        """
        distinct = Distinctness(clips)

        def may_be_asked(pairs: Pairs) -> Bool[np.ndarray, " pairs"]:
            of_one_stage = one_stage(begins, self._config.stages, pairs)
            return distinct.can_be_told_apart(pairs) & of_one_stage

        method = "uniform" if known is None else self._config.queries
        candidates = count if method == "uniform" else CANDIDATES * count
        pairs = uniform_pairs(rng, len(clips), candidates)
        pairs = redrawn(rng, len(clips), pairs, may_be_asked)
        if method == "uniform" or known is None:
            return pairs
        used, places = np.unique(pairs, return_inverse=True)
        seen = [observed(clips[i]) for i in used]
        best = self._best(method, known, seen, places.reshape(pairs.shape), count)
        return pairs[:count] if best is None else used[best]

    def _best(
        self, method: str, known: Known, clips: Sequence[ObservedClip], pairs: Pairs, count: int
    ) -> Pairs | None:
        """Return the best candidates by a method; None if the model knows nothing yet."""
        model, embedded = self._model, None
        if method != "disagreement" and isinstance(model, EmbedsClips):
            embedded = model.embed(known.row, known.comparisons, clips)
        if embedded is not None:
            method_of = {"information": informative_pairs, "coverage": covering_pairs}[method]
            return method_of(embedded, pairs, count)
        opinions = model.opinions(known.reward, clips)
        if opinions is None:
            return None
        if method == "disagreement":
            return most_disputed(opinions.clip_returns, pairs, count, known.tie_width)
        if method == "information":
            returns, width = opinions.clip_returns, known.tie_width
            return most_informative_of_members(returns, pairs, count, width)
        return covering_members(opinions.clip_returns, pairs, count)


def informative_pairs(embedded: Embedding, pairs: Pairs, count: int) -> Pairs:
    """Return the most informative pairs, by the posterior of the embedding's weights."""
    weights, width = embedded.weights, embedded.tie_width
    fisher = answer_information(embedded.labelled @ weights, width)
    covariance = posterior_covariance(embedded.clips, embedded.labelled, fisher)
    return most_informative(embedded.clips @ weights, covariance, width, pairs, count)


def covering_pairs(embedded: Embedding, pairs: Pairs, count: int) -> Pairs:
    """Return the pairs that cover the space of differences of clips in the embedding."""
    differences = embedded.clips[pairs[:, 0]] - embedded.clips[pairs[:, 1]]
    return pairs[farthest_first(differences, embedded.labelled, count)]


def covering_members(clip_returns: np.ndarray, pairs: Pairs, count: int) -> Pairs:
    """Return the pairs that cover the space of differences of the members' returns."""
    differences = clip_returns[pairs[:, 0]] - clip_returns[pairs[:, 1]]
    return pairs[farthest_first(differences, np.zeros((0, differences.shape[1])), count)]
