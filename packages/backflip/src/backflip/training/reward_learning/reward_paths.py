"""Compares the learned reward on its two paths: that of queries and fits, and that of the agent."""

import math
from collections.abc import Sequence
from typing import Any, final

import jax
import numpy as np

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.preferences.clips import Clip, cut, observed, windows
from backflip.rewards.interface import RewardModel

METRIC = "reward_model_path_error"
# The largest range, relative to the reward, that counts as constant: it may be rounding alone.
CONSTANT = 1e-3
CLIPS = 2  # of each seed and phase; queries ask for opinions of as many, so that nothing compiles


@final
class RewardPaths:
    """Asks the reward model twice about the same clips of the agent.

    Args:
        model: its `opinions` are what queries and fits use, its `predict` is what the agent gets,
            without a bonus.
        length: L, the steps of a clip; fewer in a phase of fewer env steps.
    """

    def __init__(self, model: RewardModel, length: int) -> None:
        self._model, self._length = model, length
        self._predict = jax.jit(model.predict)

    def metrics(self, reward: Any, record: Transition) -> dict[str, float]:
        """Return the largest error of all seeds; NaN while rewards are constant.

            1 - ρ(r_fit, r_agent)

        ρ is the correlation over the steps that are alive: a scale and a shift may differ.

        Args:
            reward: parameters of the learned reward, with a leading axis of seeds.
            record: transitions (seeds, T', M) of the agent.
        """
        seeds = range(len(record.terminated))
        errors = [self._error(row_of(reward, row), row_of(record, row)) for row in seeds]
        known = [error for error in errors if math.isfinite(error)]
        return {METRIC: max(known, default=math.nan)}

    def _error(self, reward: Any, record: Transition) -> float:
        length = min(self._length, len(record.terminated))
        places = windows(record, length)
        if not places:
            return math.nan
        chosen = np.linspace(0, len(places) - 1, CLIPS).astype(int)
        clips = [cut(record, places[at], length) for at in chosen]
        opinions = self._model.opinions(reward, [observed(clip) for clip in clips])
        if opinions is None:
            return math.nan
        used = np.asarray(self._predict(reward, _batch(clips))).T
        alive = np.stack([clip.alive for clip in clips])
        return _error_of(np.asarray(opinions.reward)[alive], used[alive])


def _batch(clips: Sequence[Clip]) -> Transition:
    """Return clips as a batch (L, C), without the true reward."""
    alive = np.stack([clip.alive for clip in clips], axis=1)
    none = np.zeros(alive.shape, np.float32)
    obs, action, next_obs = (
        np.stack(of, axis=1)
        for of in zip(*((c.obs, c.action, c.next_obs) for c in clips), strict=True)
    )
    return Transition(
        obs=obs,
        action=action,
        reward=none,
        terminated=none > 0,
        truncated=none > 0,
        next_obs=next_obs,
        valid=alive,
        extra=(),
    )


def _error_of(fitted: np.ndarray, used: np.ndarray) -> float:
    """Return 1 - ρ; NaN if one of the rewards is constant, as -1 for each step is."""
    if any(np.ptp(x) <= CONSTANT * np.abs(x).max() for x in (fitted, used)):
        return math.nan
    return 1.0 - float(np.corrcoef(fitted, used)[0, 1])
