"""Observations and rewards divided by their running standard deviation.

Angles are wrapped before they are scaled.

Source: Huang et al. 2022, "The 37 implementation details of PPO": observations are shifted, scaled
and clipped to ±10; rewards are scaled and clipped, never shifted.
"""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core import statistics
from backflip.core.statistics import RunningStatistics
from backflip.core.types import Transition

State = TypeVar("State")


def scale_obs(seen: RunningStatistics, obs: Float[Array, " B *shape"]) -> Float[Array, " B *shape"]:
    """Return clip((o - μ) / σ, -10, 10) with the running μ and σ."""
    scale = jnp.maximum(seen.std, 1e-4)
    return jnp.clip((obs - seen.mean[None]) / scale[None], -10.0, 10.0)


def wrap_angles(
    angles: tuple[int, ...], obs: Float[Array, " *batch D"]
) -> Float[Array, " *batch D"]:
    """Return observations with the angles a of some indices as a - 2π ⌊(a + π) / 2π⌋.

    The angle of a joint without limit grows with every turn, but the state is the same after each.
    A network that sees the turns has to learn each of them separately.
    """
    turn = np.zeros((1,) * (obs.ndim - 1) + obs.shape[-1:], np.float32)
    turn[..., list(angles)] = 2 * np.pi
    turns = jnp.floor((obs + np.float32(np.pi)) / np.float32(2 * np.pi))
    return obs - turn * turns


def observe(seen: RunningStatistics, batch: Transition) -> RunningStatistics:
    """Return observation statistics that include this batch's valid rows."""
    rows = batch.obs.reshape(-1, *batch.obs.shape[2:])
    return statistics.merge(seen, statistics.of_rows(rows, batch.valid.reshape(-1)))


def normalize_rewards(discount: float, state: State, batch: Transition) -> tuple[Transition, State]:
    """Divide rewards by the standard deviation of the discounted return so far.

    Returns:
        The batch with scaled rewards, and the state of `observe_returns`.
    """
    state = observe_returns(discount, state, batch)
    known: Any = state
    scale = jnp.maximum(known.return_statistics.std, 1e-4)
    return batch._replace(reward=jnp.clip(batch.reward / scale, -10.0, 10.0)), state


def observe_returns(discount: float, state: State, batch: Transition) -> State:
    """Return the state whose return statistics include this batch.

    R ← γ R + r, the statistics add R, then R ← 0 if the episode ended.

    Args:
        discount: γ per env step.
        state: with the fields `return_statistics` (of R since the start) and `running_return`
            (N,) (R of each environment's current episode).
        batch: axes (T, N), zeros in invalid rows.
    """
    known: Any = state
    ended = batch.terminated | batch.truncated

    def forward(running: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, ended = step
        running = discount * running + reward
        return jnp.where(ended, 0.0, running), running

    running, returns = jax.lax.scan(forward, known.running_return, (batch.reward, ended))
    rows = statistics.of_rows(returns.reshape(-1), batch.valid.reshape(-1))
    seen = statistics.merge(known.return_statistics, rows)
    return known._replace(return_statistics=seen, running_return=running)
