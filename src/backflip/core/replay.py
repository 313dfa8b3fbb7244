"""The memory of off-policy learning: the last env steps, and minibatches drawn from them.

A `Replay` is a ring of L rows, one for each moment, by C columns, one for each environment. The
same functions serve JAX arrays, which they copy, and NumPy arrays, which they write in place.
Adding and drawing take time that does not depend on L.

Vectors are stored with their true successors. Images are stored once: a stack of frames is put
together again when it is drawn, and a successor is the next row's image. Where the next row
begins another episode the successor is not there: it is not needed after a terminated step, and a
truncated step is then not drawn (its row comes back as not valid).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from backflip.core import priorities
from backflip.core.namespace import namespace_of
from backflip.core.spec import Discrete, EnvSpec
from backflip.core.types import Transition


class Replay(NamedTuple):
    """The rows held; axes (L, C) first.

    Attributes:
        obs: observations, of stacked images only the newest frame.
        action: as the policy chose it.
        reward: true rewards.
        terminated: as in `Transition`.
        truncated: as in `Transition`.
        valid: as in `Transition`.
        next_obs: true successors of vectors; `()` for images.
        position: the row that is written next.
        filled: rows that hold something.
        tree: the sum trees of priorities, one for each seed, or `()`.
        draws: batches drawn so far.
    """

    obs: Any
    action: Any
    reward: Any
    terminated: Any
    truncated: Any
    valid: Any
    next_obs: Any
    position: Any
    filled: Any
    tree: Any
    draws: Any


class Sampled(NamedTuple):
    """What is known of each row that was drawn, beside the transition.

    Attributes:
        discount: γ^m for the m rewards summed: what the successor's value is multiplied by.
        place: where the row is, counted row by row: time C + column.
        weight: importance weight in (0, 1]; 1 where rows are drawn uniformly.
    """

    discount: Float[Array, "*batch"]
    place: Int[Array, "*batch"]
    weight: Float[Array, "*batch"]


@dataclass(frozen=True, eq=False)
class Layout:
    """What a replay holds and how it is read.

    Attributes:
        length: L, moments held.
        columns: C, environments.
        frame: shape of one stored observation.
        obs_dtype: its dtype.
        action: shape of one action.
        action_dtype: its dtype.
        stack: frames in an observation.
        repeats_first_frame: as in `EnvSpec`.
        images: observations are stored once, without successors.
        n_step: n, rewards summed before bootstrapping.
        discount: γ, for that sum.
        prioritized: rows have priorities.
        seeds: whose environments are columns side by side; more than one in NumPy only.
        clip_rewards: each reward is read as the nearest in [-1, 1].
    """

    length: int
    columns: int
    frame: tuple[int, ...]
    obs_dtype: np.dtype
    action: tuple[int, ...]
    action_dtype: np.dtype
    stack: int
    repeats_first_frame: bool
    images: bool
    n_step: int
    discount: float
    prioritized: bool
    seeds: int
    clip_rewards: bool

    @property
    def first_age(self) -> int:
        """Rows from the oldest on that may lack older frames of their stack."""
        return self.stack - 1

    @property
    def lead(self) -> int:
        """Newest rows that cannot be drawn yet: what follows them is not known."""
        return self.n_step - 1 + self.images

    @property
    def bytes(self) -> int:
        """Memory of the whole, in bytes."""
        one = np.prod(self.frame, dtype=np.int64) * self.obs_dtype.itemsize
        one *= 1 if self.images else 2
        one += np.prod(self.action, dtype=np.int64) * self.action_dtype.itemsize + 4 + 3
        leaves = priorities.leaves_for(self.length * self.columns_of_seed)
        trees = 8 * leaves * self.seeds if self.prioritized else 0
        return int(one) * self.length * self.columns + trees

    @property
    def columns_of_seed(self) -> int:
        """C / S, environments of each seed."""
        return self.columns // self.seeds


def layout(
    spec: EnvSpec,
    *,
    capacity: int,
    num_envs: int,
    rollout_length: int,
    n_step: int = 1,
    discount: float = 0.99,
    prioritized: bool = False,
    seeds: int = 1,
    clip_rewards: bool = False,
) -> Layout:
    """Return the layout of a replay of at most `capacity` env steps of each seed.

    L is a multiple of the rollout's length, so that a rollout never goes over the end.

    Args:
        spec: of the environment.
        capacity: env steps of one seed.
        num_envs: N, environments of one seed.
        rollout_length: rows added at once.
        n_step: n.
        discount: γ.
        prioritized: rows have priorities.
        seeds: whose environments are columns side by side.
        clip_rewards: each reward is read as the nearest in [-1, 1].
    """
    length = max(capacity // num_envs // rollout_length, 1) * rollout_length
    frame = spec.observation.shape
    if spec.frame_stack > 1:
        frame = (*frame[:-1], frame[-1] // spec.frame_stack)
    discrete = isinstance(spec.action, Discrete)
    return Layout(
        length=length,
        columns=num_envs * seeds,
        frame=frame,
        obs_dtype=np.dtype(spec.observation.dtype),
        action=() if isinstance(spec.action, Discrete) else spec.action.shape,
        action_dtype=np.dtype(np.int32 if discrete else np.float32),
        stack=spec.frame_stack,
        repeats_first_frame=spec.repeats_first_frame,
        images=spec.is_pixels,
        n_step=n_step,
        discount=discount,
        prioritized=prioritized,
        seeds=seeds,
        clip_rewards=clip_rewards,
    )


def empty(of: Layout) -> Replay:
    """Return a replay without rows, in NumPy arrays whose memory is not touched yet."""
    rows = (of.length, of.columns)
    seen = np.zeros((*rows, *of.frame), of.obs_dtype)
    tree = priorities.empty(of.length * of.columns_of_seed)
    return Replay(
        obs=seen,
        action=np.zeros((*rows, *of.action), of.action_dtype),
        reward=np.zeros(rows, np.float32),
        terminated=np.zeros(rows, bool),
        truncated=np.zeros(rows, bool),
        valid=np.zeros(rows, bool),
        next_obs=() if of.images else np.zeros_like(seen),
        position=np.zeros((), np.int32),
        filled=np.zeros((), np.int32),
        tree=np.stack([tree] * of.seeds) if of.prioritized else (),
        draws=np.zeros((), np.int32),
    )


def add(of: Layout, replay: Replay, batch: Transition) -> Replay:
    """Return the replay with the rows (T, C) of a batch in the place of the oldest."""
    rows = batch.reward.shape[0]
    at = replay.position

    def newest(obs: Any) -> Any:
        return obs[..., -of.frame[-1] :] if of.stack > 1 else obs

    added = replay._replace(
        obs=_write(replay.obs, at, newest(batch.obs)),
        action=_write(replay.action, at, batch.action),
        reward=_write(replay.reward, at, batch.reward),
        terminated=_write(replay.terminated, at, batch.terminated),
        truncated=_write(replay.truncated, at, batch.truncated),
        valid=_write(replay.valid, at, batch.valid),
        next_obs=() if of.images else _write(replay.next_obs, at, batch.next_obs),
        position=_count(at, (at + rows) % of.length),
        filled=_count(replay.filled, namespace_of(at).minimum(replay.filled + rows, of.length)),
    )
    return _prefer_newest(of, added, rows) if of.prioritized else added


def ages(of: Layout, replay: Replay) -> tuple[Any, Any]:
    """Return the first and, exclusive, the last age of rows to draw; age 0 is the oldest row."""
    last = namespace_of(replay.filled).maximum(replay.filled - of.lead, of.first_age + 1)
    return of.first_age, last


def time_of(of: Layout, replay: Replay, age: Any) -> Any:
    """Return in which row of the ring the rows of an age are."""
    return (replay.position - replay.filled + age) % of.length


def read(of: Layout, replay: Replay, time: Any, column: Any, weight: Any = None) -> Transition:
    """Return the transitions that begin at the given rows and columns, of any one shape.

        R = Σ_{k<m} γ^k r_k,   m = n, or fewer where the episode ended

    `next_obs` and the flags are those of the last of the m rows; `extra` is `Sampled`. What cannot
    be used has `valid` false.
    """
    xp = namespace_of(replay.reward)
    reward, discount, last = _sum_rewards(of, replay, time, column)
    terminated, truncated = replay.terminated[last, column], replay.truncated[last, column]
    valid = replay.valid[time, column]
    after = (last + 1) % of.length
    if of.images:
        # After a truncated step the next row is its successor only where a reset row came between.
        valid = valid & (terminated | ~truncated | ~replay.valid[after, column])
        obs, next_obs = _stack(of, replay, time, column), _stack(of, replay, after, column)
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
            place=time * of.columns + column,
            weight=xp.ones(time.shape, np.float32) if weight is None else weight,
        ),
    )


def sample(
    of: Layout, replay: Replay, key: Array, shape: tuple[int, int], correction: Any = 0.0
) -> tuple[Replay, Transition]:
    """Draw (U, B) rows of a replay in JAX arrays, with replacement.

    Uniformly, or by priority with the importance weights (n P(i))^-β over their largest.

    Args:
        of: the replay's layout.
        replay: of one seed.
        key: of this draw.
        shape: (U, B).
        correction: β.
    """
    time_key, column_key = jax.random.split(key)
    first, last = ages(of, replay)
    drawn = replay._replace(draws=replay.draws + 1)
    if of.prioritized:
        uniform = jax.random.uniform(time_key, shape)
        return drawn, read(of, replay, *_by_priority(of, replay, 0, uniform, correction))
    age = jax.random.randint(time_key, shape, first, last)
    column = jax.random.randint(column_key, shape, 0, of.columns)
    return drawn, read(of, replay, time_of(of, replay, age), column)


def sample_on_host(
    of: Layout,
    replay: Replay,
    rngs: Sequence[np.random.Generator],
    shape: tuple[int, int],
    correction: float = 0.0,
) -> Transition:
    """Draw (S, U, B) rows of a replay in NumPy arrays, those of each seed by its own generator.

    As `sample` does; counts the draw.
    """
    draw = partial(_by_priority_on_host, correction=correction) if of.prioritized else _uniformly
    drawn = [draw(of, replay, seed, rng, shape) for seed, rng in enumerate(rngs)]
    time, column, weight = (np.stack(parts) for parts in zip(*drawn, strict=True))
    replay.draws[...] += 1
    return read(of, replay, time, column, weight)


def reprioritize(
    of: Layout,
    replay: Replay,
    drawn: Transition,
    errors: Float[Any, "*batch"],
    exponent: float,
) -> Replay:
    """Return the replay with the priorities (|error| + ε)^α of the rows that were drawn.

    Source: Schaul et al. 2016, arXiv:1511.05952, eq. 1. Rows that could not be used get none.
    """
    xp = namespace_of(replay.reward)
    priority = (xp.abs(errors) + np.float32(priorities.SMALLEST)) ** np.float32(exponent)
    priority = xp.where(drawn.valid, priority, np.float32(0.0))
    return _put(of, replay, drawn.extra.place, priority)


def _uniformly(
    of: Layout, replay: Replay, seed: int, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time, column and weight of rows of one seed."""
    first, last = ages(of, replay)
    age = rng.integers(first, int(last), shape, dtype=np.int32)
    column = rng.integers(0, of.columns_of_seed, shape, dtype=np.int32)
    weight = np.ones(shape, np.float32)
    return time_of(of, replay, age), seed * of.columns_of_seed + column, weight


def _by_priority_on_host(
    of: Layout,
    replay: Replay,
    seed: int,
    rng: np.random.Generator,
    shape: tuple[int, int],
    correction: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _by_priority(of, replay, seed, rng.random(shape, np.float32), correction)


def _by_priority(
    of: Layout, replay: Replay, seed: int, uniform: Float[Any, "U B"], correction: Any
) -> tuple[Any, Any, Any]:
    """Return time, column and weight of rows of one seed."""
    index, chance = priorities.find(replay.tree[seed], uniform)
    held = of.columns_of_seed * replay.filled.astype(np.float32)
    weight = (chance * held) ** -correction
    time, column = index // of.columns_of_seed, index % of.columns_of_seed
    return time, seed * of.columns_of_seed + column, weight / weight.max()


def _put(of: Layout, replay: Replay, place: Any, priority: Any) -> Replay:
    """Return the replay with new priorities of rows, each in the tree of its seed."""
    time, column = place // of.columns, place % of.columns
    leaf = time * of.columns_of_seed + column % of.columns_of_seed
    if of.seeds == 1:
        tree = priorities.put(replay.tree[0], leaf.reshape(-1), priority.reshape(-1))
        return replay._replace(tree=tree[None])
    for seed, tree in enumerate(replay.tree):  # NumPy's, written in place
        mine = column // of.columns_of_seed == seed
        priorities.put(tree, leaf[mine], priority[mine])
    return replay


def _prefer_newest(of: Layout, replay: Replay, rows: int) -> Replay:
    """Return the replay with the largest priority for what can be drawn since `rows` were added.

    And with none for what cannot: the newest rows until what follows them is there, the oldest
    whose frames are gone, and those that are not transitions.
    """
    xp = namespace_of(replay.reward)
    first, last = ages(of, replay)
    start = max(-of.lead, rows - of.length)
    end = min(rows + of.first_age, of.length + start)
    age = replay.filled - rows + xp.arange(start, end)
    time = time_of(of, replay, age)[:, None]
    column = xp.arange(of.columns)[None]
    # Rows after the newest are the oldest of a full ring, whose ages go on from 0.
    ready = ((age >= first) & (age < last))[:, None] & replay.valid[time, column]
    priority = xp.where(ready, replay.tree[column // of.columns_of_seed, 0], np.float32(0.0))
    return _put(of, replay, time * of.columns + column, priority)


def _sum_rewards(of: Layout, replay: Replay, time: Any, column: Any) -> tuple[Any, Any, Any]:
    """Return the discounted sum of up to n rewards, γ^m, and the last row of the m."""
    xp = namespace_of(replay.reward)
    reward = _reward(of, replay, time, column)
    discount, last = xp.full(time.shape, of.discount, np.float32), time
    going = xp.ones(time.shape, bool)
    for _ in range(of.n_step - 1):
        going = going & ~(replay.terminated[last, column] | replay.truncated[last, column])
        following = (last + 1) % of.length
        reward = reward + xp.where(going, discount * _reward(of, replay, following, column), 0.0)
        discount = xp.where(going, discount * np.float32(of.discount), discount)
        last = xp.where(going, following, last)
    return reward.astype(np.float32), discount, last


def _reward(of: Layout, replay: Replay, time: Any, column: Any) -> Any:
    reward = replay.reward[time, column]
    return reward.clip(-1.0, 1.0) if of.clip_rewards else reward


def _stack(of: Layout, replay: Replay, time: Any, column: Any) -> Any:
    """Return the observations at rows: their frames, the oldest first.

    In the place of frames before the episode's first stands that one again, or a black one.
    """
    if of.stack == 1:
        return replay.obs[time, column]
    xp = namespace_of(replay.reward)
    gone = xp.zeros(time.shape, bool)
    moments = [(time, gone)]
    for _ in range(of.stack - 1):
        gone = gone | _begins(of, replay, time, column)
        time = xp.where(gone, time, (time - 1) % of.length)
        moments.append((time, gone))
    if isinstance(replay.obs, np.ndarray):
        return _stack_on_host(of, replay.obs, moments[::-1], column)
    frames = [replay.obs[time, column] for time, _ in moments[::-1]]
    if not of.repeats_first_frame:
        shown = [~gone.reshape(*gone.shape, 1, 1, 1) for _, gone in moments[::-1]]
        frames = [frame * seen for frame, seen in zip(frames, shown, strict=True)]
    return jnp.concatenate(frames, -1)


def _stack_on_host(
    of: Layout, obs: np.ndarray, moments: Sequence[tuple[np.ndarray, np.ndarray]], column: Any
) -> np.ndarray:
    """Return the frames of moments side by side: `np.concatenate` takes three times as long."""
    channels = of.frame[-1]
    stacks = np.empty((*column.shape, *of.frame[:-1], of.stack * channels), obs.dtype)
    for place, (time, gone) in enumerate(moments):
        part = stacks[..., place * channels : (place + 1) * channels]
        part[...] = obs[time, column]
        if not of.repeats_first_frame:
            part[gone] = 0
    return stacks


def _begins(of: Layout, replay: Replay, time: Any, column: Any) -> Any:
    """Return whether rows are the first of an episode; a reset row belongs to the one before."""
    before = (time - 1) % of.length
    ended = replay.terminated[before, column] | replay.truncated[before, column]
    return replay.valid[time, column] & (ended | ~replay.valid[before, column])


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
