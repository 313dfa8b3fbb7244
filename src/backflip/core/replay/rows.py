"""Rows go into the ring in the place of the oldest, and are read as transitions of n steps."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backflip.core.namespace import namespace_of
from backflip.core.replay.frames import stack_frames
from backflip.core.replay.layout import Layout, Replay, Sampled
from backflip.core.replay.preference import prefer_newest
from backflip.core.types import Transition


def add(layout: Layout, replay: Replay, batch: Transition) -> Replay:
    """Return the replay with the rows (T, C) of a batch in the place of the oldest."""
    rows = batch.reward.shape[0]
    at = replay.position

    def newest(obs: Any) -> Any:
        return obs[..., -layout.frame[-1] :] if layout.stack > 1 else obs

    added = replay._replace(
        obs=_write(replay.obs, at, newest(batch.obs)),
        action=_write(replay.action, at, batch.action),
        reward=_write(replay.reward, at, batch.reward),
        terminated=_write(replay.terminated, at, batch.terminated),
        truncated=_write(replay.truncated, at, batch.truncated),
        valid=_write(replay.valid, at, batch.valid),
        next_obs=() if layout.images else _write(replay.next_obs, at, batch.next_obs),
        position=_count(at, (at + rows) % layout.length),
        filled=_count(replay.filled, namespace_of(at).minimum(replay.filled + rows, layout.length)),
    )
    return prefer_newest(layout, added, rows) if layout.prioritized else added


def read(layout: Layout, replay: Replay, time: Any, column: Any, weight: Any = None) -> Transition:
    """Return the transitions that begin at the given rows and columns, of any one shape.

        R = Σ_{k<m} γ^k r_k,   m = n, or fewer where the episode ended

    `next_obs` and the flags are those of the last of the m rows; `extra` is `Sampled`. What cannot
    be used has `valid` false.
    """
    xp = namespace_of(replay.reward)
    reward, discount, last = _sum_rewards(layout, replay, time, column)
    terminated, truncated = replay.terminated[last, column], replay.truncated[last, column]
    valid = replay.valid[time, column]
    after = (last + 1) % layout.length
    if layout.images:
        # After a truncated step the next row is its successor only where a reset row came between.
        valid = valid & (terminated | ~truncated | ~replay.valid[after, column])
        obs = stack_frames(layout, replay, time, column)
        next_obs = stack_frames(layout, replay, after, column)
    else:
        obs, next_obs = replay.obs[time, column], replay.next_obs[last, column]
    return Transition(
        obs=obs,
        action=replay.action[time, column],
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        next_obs=next_obs,
        valid=valid,
        extra=Sampled(
            discount=discount,
            place=time * layout.columns + column,
            weight=xp.ones(time.shape, np.float32) if weight is None else weight,
        ),
    )


def _sum_rewards(layout: Layout, replay: Replay, time: Any, column: Any) -> tuple[Any, Any, Any]:
    """Return the discounted sum of up to n rewards, γ^m, and the last row of the m."""
    xp = namespace_of(replay.reward)
    reward = _reward(layout, replay, time, column)
    discount, last = xp.full(time.shape, layout.discount, np.float32), time
    going = xp.ones(time.shape, bool)
    for _ in range(layout.n_step - 1):
        going = going & ~(replay.terminated[last, column] | replay.truncated[last, column])
        following = (last + 1) % layout.length
        reward = reward + xp.where(
            going, discount * _reward(layout, replay, following, column), 0.0
        )
        discount = xp.where(going, discount * np.float32(layout.discount), discount)
        last = xp.where(going, following, last)
    return reward.astype(np.float32), discount, last


def _reward(layout: Layout, replay: Replay, time: Any, column: Any) -> Any:
    reward = replay.reward[time, column]
    return reward.clip(-1.0, 1.0) if layout.clip_rewards else reward


def _write(array: Any, at: Any, rows: Any) -> Any:
    """Return the array with rows from row `at` on."""
    if isinstance(array, np.ndarray):
        array[int(at) : int(at) + rows.shape[0]] = rows
        return array
    start = (at, *(0 for _ in rows.shape[1:]))
    return jax.lax.dynamic_update_slice(array, rows.astype(array.dtype), start)


def _count(array: Any, value: Any) -> Any:
    """Return the number of a replay with another value, written in place where it is NumPy's."""
    if isinstance(array, np.ndarray):
        array[...] = value
        return array
    return value.astype(jnp.int32)
