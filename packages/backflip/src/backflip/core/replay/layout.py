"""What a replay holds, and which of its rows are old enough and new enough to be drawn."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from backflip.core.namespace import namespace_of
from backflip.core.replay import sum_tree
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
        next_obs: true successors, of stacked images only the newest frame; `()` where the layout
            keeps none.
        position: the row that is written next.
        filled: rows that hold something.
        tree: the sum trees of priorities, one for each seed, or `()`.
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
    """What is known of each row that was drawn, beside the transition.

    Attributes:
        discount: γ^m for the m rewards summed: what the successor's value is multiplied by.
        place: where the row is, counted row by row: time C + column.
        weight: importance weight in (0, 1]; 1 where rows are drawn uniformly.
    """

    discount: Float[Array, "*batch"]
    place: Int[Array, "*batch"]
    weight: Float[Array, "*batch"]


class Steps(NamedTuple):
    """The single env steps that make up rows of n steps, for a reward to be looked up for each.

        R = Σ_{k<n} discount_k r(rows_k)

    Attributes:
        rows: transitions of one env step, (*batch, n, B) where rows were (*batch, B); `extra` is
            `()`.
        discount: γ^k; 0 for steps after the episode's end, whose rows repeat the last one.
    """

    rows: Transition
    discount: Float[Any, "*batch n B"]


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
        keeps_successors: the observation after each row is stored too. Images are otherwise stored
            once: the successor is the next row's observation, unless the episode ended.
        n_step: n, rewards summed before bootstrapping.
        discount: γ, for that sum.
        prioritized: rows have priorities.
        seeds: whose environments are columns side by side; more than one in NumPy only.
        clip_rewards: each true reward is read as the nearest in [-1, 1].
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

    @property
    def first_age(self) -> int:
        """Rows from the oldest on that may lack older frames of their stack."""
        return self.stack - 1

    @property
    def lead(self) -> int:
        """Newest rows that cannot be drawn yet: what follows them is not known."""
        return self.n_step - (1 if self.keeps_successors else 0)

    @property
    def bytes(self) -> int:
        """Memory of the whole, in bytes."""
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
        clip_rewards: each true reward is read as the nearest in [-1, 1].
        keeps_successors: images are stored with their successors, as vectors always are.
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
        keeps_successors=keeps_successors or not spec.is_pixels,
        n_step=n_step,
        discount=discount,
        prioritized=prioritized,
        seeds=seeds,
        clip_rewards=clip_rewards,
    )


def empty(layout: Layout) -> Replay:
    """Return a replay without rows, in NumPy arrays whose memory is not touched yet."""
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
    """Return the first and, exclusive, the last age of rows to draw; age 0 is the oldest row."""
    last = namespace_of(replay.filled).maximum(replay.filled - layout.lead, layout.first_age + 1)
    return layout.first_age, last


def time_of(layout: Layout, replay: Replay, age: Any) -> Any:
    """Return in which row of the ring the rows of an age are."""
    return (replay.position - replay.filled + age) % layout.length
