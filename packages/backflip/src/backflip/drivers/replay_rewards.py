"""The learned rewards of all rows of a replay in NumPy arrays.

A refit changes the reward of every row, so each phase begins by computing them all. Rewards of new
rows are computed as they are collected. A row is drawn several times in a phase, also as one of the
n env steps of other rows, so this is cheaper than a reward for every row drawn.
"""

from functools import partial
from typing import Any, final

import jax
import numpy as np
from jaxtyping import Array, Float

from backflip.core.replay.layout import Layout, Replay
from backflip.core.replay.rows import one_step
from backflip.core.types import Transition
from backflip.drivers.driver import RewardFunction, RewardParameters
from backflip.drivers.seeds import over_seeds

ROWS_AT_ONCE = 2_048  # few enough that their images need little memory


@final
class ReplayRewards:
    """Computes r(s, a, s') for rows of the replay of all seeds.

    Args:
        reward: the learned reward.
    """

    def __init__(self, reward: RewardFunction) -> None:
        self._compute = over_seeds(partial(_of_seed, reward))

    def of_replay(
        self, layout: Layout, replay: Replay, parameters: RewardParameters
    ) -> Float[np.ndarray, "L C"]:
        """Return the rewards of all rows; any number where nothing is stored yet."""
        rewards, columns = np.zeros_like(replay.reward), np.arange(layout.columns)[None]
        count = min(max(ROWS_AT_ONCE // layout.columns, 1), layout.length)
        for start in range(0, int(replay.filled), count):
            time = (start + np.arange(count)) % layout.length  # one shape: one compiled program
            rows = one_step(layout, replay, *np.broadcast_arrays(time[:, None], columns))
            by_seed = jax.tree.map(partial(_by_seed, layout.seeds), rows)
            rewards[time] = self.of_rollout(by_seed, parameters)
        return rewards

    def of_rollout(
        self, batch: Transition, parameters: RewardParameters
    ) -> Float[np.ndarray, "T C"]:
        """Return the rewards of transitions (S, T, N)."""
        found = np.asarray(self._compute(batch._replace(extra=(), scene=()), parameters))
        return np.moveaxis(found, 0, 1).reshape(found.shape[1], -1)


def _by_seed(seeds: int, x: Any) -> np.ndarray:
    """Return (T, S N, ...) as (S, T, N, ...)."""
    return np.moveaxis(x.reshape(x.shape[0], seeds, -1, *x.shape[2:]), 1, 0)


def _of_seed(reward: RewardFunction, batch: Transition, parameters: RewardParameters) -> Array:
    return reward(parameters, batch)
