"""The arrays of a replay, and which of its rows can be drawn."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from backflip.core.namespace import namespace_of
from backflip.core.replay import sum_tree
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition


class Replay(NamedTuple):
    """The stored rows; arrays have the axes (L, C) first.

    Attributes:
        obs: observations, of stacked images only the newest frame.
        action: as the policy chose it.
        reward: true rewards.
        terminated: as in `Transition`.
        truncated: as in `Transition`.
        valid: as in `Transition`.
        next_obs: true successors, of stacked images only the newest frame; `()` if not stored.
        position: index of the row that is written next.
        filled: number of rows stored.
        tree: the sum trees of priorities, one per seed, or `()`.
        draws: draws so far, each of U minibatches.
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
    """Facts about each drawn row: `Transition.extra` of a replay.

    Attributes:
        discount: γ^m for the m rewards summed, the factor of the successor's value.
        place: index of the row: time C + column.
        weight: importance weight in (0, 1]; 1 if rows are drawn uniformly.
    """

    discount: Float[Array, "*batch"]
    place: Int[Array, "*batch"]
    weight: Float[Array, "*batch"]


class Steps(NamedTuple):
    """The single env steps of n-step rows, for which a learned reward is looked up.

        R = Σ_{k<n} discount_k r(rows_k)

    Attributes:
        rows: transitions of one env step, (*batch, n, B) for rows (*batch, B); `extra` is `()`.
        discount: γ^k; 0 for steps after the episode's end, whose rows repeat the last one.
    """

    rows: Transition
    discount: Float[Any, "*batch n B"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The shape of a replay and how it is read.

    Attributes:
        length: L, time steps.
        columns: C, environments.
        frame: shape of one stored observation.
        obs_dtype: its dtype.
        action: shape of one action.
        action_dtype: its dtype.
        stack: frames in an observation.
        repeats_first_frame: as in `EnvSpec`.
        keeps_successors: the observation after each row is stored too. Otherwise, for images only,
            the successor is the next row's observation, unless the episode ended.
        n_step: n, rewards summed before bootstrapping.
        discount: γ, for that sum.
        prioritized: rows have priorities.
        seeds: number of seeds, whose environments are blocks of columns; above 1 in NumPy only.
        clip_rewards: true rewards are clipped to [-1, 1] when read.
        recent_share: share of the drawn rows that come from the newest `recent` rows only.
        recent: how many time steps those are.
    """

    length: int
    columns: int
    frame: tuple[int, ...]
    obs_dtype: np.dtype
    action: tuple[int, ...]
    action_dtype: np.dtype
    stack: int
    repeats_first_frame: bool
    keeps_successors: bool
    n_step: int
    discount: float
    prioritized: bool
    seeds: int
    clip_rewards: bool
    recent_share: float = 0.0
    recent: int = 0

    @property
    def first_age(self) -> int:
        """Number of oldest rows that may lack older frames of their stack."""
        return self.stack - 1

    @property
    def lead(self) -> int:
        """Number of newest rows that cannot be drawn yet, because their successors are missing."""
        return self.n_step - (1 if self.keeps_successors else 0)

    @property
    def bytes(self) -> int:
        """Memory of the replay, in bytes."""
        one = np.prod(self.frame, dtype=np.int64) * self.obs_dtype.itemsize
        one *= 2 if self.keeps_successors else 1
        one += np.prod(self.action, dtype=np.int64) * self.action_dtype.itemsize + 4 + 3
        leaves = sum_tree.leaves_for(self.length * self.columns_of_seed)
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
    keeps_successors: bool = False,
    recent_share: float = 0.0,
    recent_env_steps: int = 0,
) -> Layout:
    """Return the layout of a replay of at most `capacity` env steps of each seed.

    L is a multiple of the rollout length, so that a rollout never wraps around. `num_envs` is per
    seed; the other arguments are those of `Layout`, where vectors always keep their successors.
    `recent_env_steps` are those of each seed.
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
        keeps_successors=keeps_successors or not spec.is_image,
        n_step=n_step,
        discount=discount,
        prioritized=prioritized,
        seeds=seeds,
        clip_rewards=clip_rewards,
        recent_share=recent_share,
        recent=max(-(-recent_env_steps // num_envs), 1),
    )


def empty(layout: Layout) -> Replay:
    """Return a replay without rows, in NumPy arrays; the system allocates memory on first write."""
    rows = (layout.length, layout.columns)
    seen = np.zeros((*rows, *layout.frame), layout.obs_dtype)
    tree = sum_tree.empty(layout.length * layout.columns_of_seed)
    return Replay(
        obs=seen,
        action=np.zeros((*rows, *layout.action), layout.action_dtype),
        reward=np.zeros(rows, np.float32),
        terminated=np.zeros(rows, bool),
        truncated=np.zeros(rows, bool),
        valid=np.zeros(rows, bool),
        next_obs=np.zeros_like(seen) if layout.keeps_successors else (),
        position=np.zeros((), np.int32),
        filled=np.zeros((), np.int32),
        tree=np.stack([tree] * layout.seeds) if layout.prioritized else (),
        draws=np.zeros((), np.int32),
    )


def ages(layout: Layout, replay: Replay) -> tuple[Any, Any]:
    """Return the first age and the end of ages (exclusive) to draw; age 0 is the oldest row."""
    last = namespace_of(replay.filled).maximum(replay.filled - layout.lead, layout.first_age + 1)
    return layout.first_age, last


def recent_ages(layout: Layout, replay: Replay) -> tuple[Any, Any]:
    """Return the first age and the end of ages (exclusive) of the newest `recent` rows to draw."""
    first, last = ages(layout, replay)
    return namespace_of(replay.filled).maximum(last - layout.recent, first), last


def time_of(layout: Layout, replay: Replay, age: Any) -> Any:
    """Return the ring index of rows of the given age."""
    return (replay.position - replay.filled + age) % layout.length
