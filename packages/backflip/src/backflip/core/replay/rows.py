"""Writing rows over the oldest of the ring, and reading rows as transitions of n env steps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from backflip.core.namespace import namespace_of
from backflip.core.replay.frames import stack_frames
from backflip.core.replay.layout import Layout, Replay, Sampled, Steps
from backflip.core.replay.priorities import prioritize_newest
from backflip.core.types import Transition


def add(layout: Layout, replay: Replay, batch: Transition) -> Replay:
    """Return the replay with the rows (T, C) of a batch written over the oldest."""
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
        next_obs=(
            _write(replay.next_obs, at, newest(batch.next_obs)) if layout.keeps_successors else ()
        ),
        position=_count(at, (at + rows) % layout.length),
        filled=_count(replay.filled, namespace_of(at).minimum(replay.filled + rows, layout.length)),
    )
    return prioritize_newest(layout, added, rows) if layout.prioritized else added


def read(layout: Layout, replay: Replay, time: Any, column: Any, weight: Any = None) -> Transition:
    """Return the transitions that begin at the given rows and columns, of any one shape.

        R = Σ_{k<m} γ^k r_k,   m = n, or fewer if the episode ended

    `next_obs` and the flags are those of the last of the m rows; `extra` is `Sampled`. Rows that
    cannot be used are invalid.
    """
    xp = namespace_of(replay.reward)
    steps = _walk(layout, replay, time, column)
    last = steps[-1].time
    terminated, truncated = replay.terminated[last, column], replay.truncated[last, column]
    valid = replay.valid[time, column]
    if not layout.keeps_successors:
        # After a truncated step the next row is the successor only if a reset row came between.
        after = (last + 1) % layout.length
        valid = valid & (terminated | ~truncated | ~replay.valid[after, column])
    return Transition(
        obs=stack_frames(layout, replay, time, column),
        action=replay.action[time, column],
        reward=_sum_rewards(layout, replay, steps, column),
        terminated=terminated,
        truncated=truncated,
        next_obs=_successor(layout, replay, last, column),
        valid=valid,
        extra=Sampled(
            discount=steps[-1].discount * np.float32(layout.discount),
            place=time * layout.columns + column,
            weight=xp.ones(time.shape, np.float32) if weight is None else weight,
        ),
    )


def read_steps(layout: Layout, replay: Replay, place: Any) -> Steps:
    """Return the n single env steps of each drawn row.

    Args:
        layout: of the replay.
        replay: the replay.
        place: `Sampled.place` of the rows.
    """
    xp = namespace_of(replay.reward)
    time, column = place // layout.columns, place % layout.columns
    steps = _walk(layout, replay, time, column)
    rows = [one_step(layout, replay, step.time, column) for step in steps]
    discounts = [xp.where(step.counts, step.discount, np.float32(0)) for step in steps]

    def stack(*of_each: Any) -> Any:
        return xp.stack(of_each, place.ndim - 1)

    return Steps(jax.tree.map(stack, *rows), stack(*discounts))


def one_step(layout: Layout, replay: Replay, time: Any, column: Any) -> Transition:
    """Return transitions of one env step, with unclipped true rewards."""
    return Transition(
        obs=stack_frames(layout, replay, time, column),
        action=replay.action[time, column],
        reward=replay.reward[time, column],
        terminated=replay.terminated[time, column],
        truncated=replay.truncated[time, column],
        next_obs=_successor(layout, replay, time, column),
        valid=replay.valid[time, column],
        extra=(),
    )


def _successor(layout: Layout, replay: Replay, time: Any, column: Any) -> Any:
    """Return the successors of rows.

    For images without stored successors: the next row's observation, even of another episode.
    """
    if not layout.keeps_successors:
        return stack_frames(layout, replay, (time + 1) % layout.length, column)
    if layout.stack == 1:
        return replay.next_obs[time, column]
    xp, channels = namespace_of(replay.reward), layout.frame[-1]
    older = stack_frames(layout, replay, time, column)[..., channels:]
    return xp.concatenate([older, replay.next_obs[time, column]], -1)


class _Step(NamedTuple):
    """One of the n env steps of rows.

    Attributes:
        time: ring index; of the episode's last row if the episode ended before this step.
        counts: the episode did not end before this step, so it is one of the m.
        discount: γ^k of its reward; that of the last counted step if this one does not count.
    """

    time: Any
    counts: Any
    discount: Any


def _walk(layout: Layout, replay: Replay, time: Any, column: Any) -> list[_Step]:
    """Return the n env steps that begin at the given rows."""
    xp = namespace_of(replay.reward)
    step = _Step(time, xp.ones(time.shape, bool), xp.ones(time.shape, np.float32))
    steps = [step]
    for _ in range(layout.n_step - 1):
        ended = replay.terminated[step.time, column] | replay.truncated[step.time, column]
        counts = step.counts & ~ended
        step = _Step(
            xp.where(counts, (step.time + 1) % layout.length, step.time),
            counts,
            xp.where(counts, step.discount * np.float32(layout.discount), step.discount),
        )
        steps.append(step)
    return steps


def _sum_rewards(layout: Layout, replay: Replay, steps: list[_Step], column: Any) -> Any:
    """Return the discounted sums of the true rewards of the steps that count."""
    xp = namespace_of(replay.reward)
    total = _true_reward(layout, replay, steps[0].time, column)
    for step in steps[1:]:
        reward = _true_reward(layout, replay, step.time, column)
        total = total + xp.where(step.counts, step.discount * reward, 0.0)
    return total.astype(np.float32)


def _true_reward(layout: Layout, replay: Replay, time: Any, column: Any) -> Any:
    reward = replay.reward[time, column]
    return reward.clip(-1.0, 1.0) if layout.clip_rewards else reward


def _write(array: Any, at: Any, rows: Any) -> Any:
    """Return the array with `rows` written from row `at` on."""
    if isinstance(array, np.ndarray):
        array[int(at) : int(at) + rows.shape[0]] = rows
        return array
    start = (at, *(0 for _ in rows.shape[1:]))
    return jax.lax.dynamic_update_slice(array, rows.astype(array.dtype), start)


def _count(array: Any, value: Any) -> Any:
    """Return the counter with a new value; a NumPy counter is written in place."""
    if isinstance(array, np.ndarray):
        array[...] = value
        return array
    return value.astype(jnp.int32)
