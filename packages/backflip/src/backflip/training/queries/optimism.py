"""A bonus for what the members of the reward model disagree on, while queries are still to come.

    r(x) = r̂(x) + β_p σ(x),    β_p = β (queries after phase p) / (all queries)

r̂ is the learned reward, σ the standard deviation of the members' rewards, in units of r̂. The agent
goes where the reward is unknown, clips of it are compared, and the members agree. From the last
round of queries on, the agent learns from r̂ alone. Phase p is counted from 0, and queries are
counted without fresh pairs, which come until the end. With β = 0, or without later queries, the
programs are those without a bonus.

Source: Liang et al. 2022 (RUNE), arXiv:2205.12401. Departures: β_p follows the queries, in
place of an exponential decay with env steps; the members are scaled as for queries, so that β = 1
is one standard deviation in units of the reward.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Array, Float

from backflip.core.types import Transition
from backflip.rewards.interface import PredictsSpread, RewardModel
from runshelf.errors import UsageError


class Optimistic(NamedTuple):
    """The parameters of a reward with a bonus, with a leading axis of seeds.

    Attributes:
        model: the reward model's parameters.
        weight: β_p.
    """

    model: Any
    weight: Float[Any, "*seeds"]


@final
class Optimism:
    """The reward that the agent learns from: the learned one, with a bonus if β is positive.

    Args:
        model: predicts the learned reward.
        weight: β.
        queries: the number of queries before phase 1, after phase 1, ..., without fresh pairs.
        seeds: the number of seeds.
    """

    def __init__(
        self, model: RewardModel, weight: float, queries: Sequence[int], seeds: int
    ) -> None:
        self._model, self._seeds, self._weight = model, seeds, weight
        weights = [weight * share for share in shares_to_come(queries)]
        self._weights = weights if any(weights) else []

    def follow(self, queries: Sequence[int]) -> None:
        """Let the bonus follow the queries of all rounds, if some come sooner than planned."""
        if self._weights:  # the programs of a reward without a bonus stay those without
            self._weights = [self._weight * share for share in shares_to_come(queries)]

    def parameters(self, reward: Any, phase: int) -> Any:
        """Return the parameters of `reward` in a phase, from those of the learned reward."""
        if not self._weights:
            return reward
        weight = self._weights[phase] if phase < len(self._weights) else 0.0
        return Optimistic(reward, np.full(self._seeds, weight, np.float32))

    def reward(self, parameters: Any, batch: Transition) -> Float[Array, "T N"]:
        """Return r of each transition."""
        if not self._weights:
            return self._model.predict(parameters, batch)
        assert isinstance(self._model, PredictsSpread)
        found = self._model.predict_spread(parameters.model, batch)
        return found.reward + parameters.weight * found.spread


def refuse_without_spread(model: RewardModel, weight: float) -> None:
    """Refuse a bonus for a reward model that does not predict the spread of members.

    Raises:
        UsageError: the message says what to type.
    """
    if weight and not isinstance(model, PredictsSpread):
        raise UsageError(
            "`optimism` needs a reward model that predicts the spread of its members; write "
            "`predict_spread` (docs/reward-models.md), or try --set optimism=0"
        )


def shares_to_come(queries: Sequence[int]) -> list[float]:
    """Return the share of all queries that is made after phase 0, 1, ...

    Args:
        queries: the number before phase 0, after phase 0, ...
    """
    total = max(sum(queries), 1)
    return [float(sum(queries[phase + 1 :])) / total for phase in range(len(queries))]
