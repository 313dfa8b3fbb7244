"""FrozenLake-v1 in JAX: walk to the goal over ice on which a step may slip to either side.

The observation is one-hot, as in the host adapter. A step goes in direction a with probability
`success_rate`, and in each of the directions a - 1 and a + 1 with half of the rest. The edges stop
it. The goal has reward 1; the goal and the holes terminate.

Source: Gymnasium's FrozenLake-v1 (its two maps) and FrozenLake8x8-v1.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec, OwnSpaces
from backflip.envs.frozen_lake_maps import MAPS
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError, did_you_mean

STEPS = np.array([[0, -1], [1, 0], [0, 1], [-1, 0]])  # left, down, right, up, as (rows, columns)
SLIPS = (-1, 0, 1)  # possible changes of an action


class FrozenLakeState(NamedTuple):
    """The index of the current cell, row by row, and the env steps."""

    place: Int[Array, ""]
    env_steps: Int[Array, ""]


class Lake(NamedTuple):
    """A map with S cells.

    Attributes:
        start: the initial cell.
        following: the cell reached from each cell in each of the four directions.
        over: true for holes and the goal.
        goal: true for the goal.
    """

    start: int
    following: Int[np.ndarray, "S 4"]
    over: Bool[np.ndarray, " S"]
    goal: Bool[np.ndarray, " S"]


@dataclass(frozen=True)
class FrozenLake:
    """The environment.

    Attributes:
        map_name: 4x4 or 8x8.
        is_slippery: whether a step may slip.
        success_rate: the probability that a step does not slip, if it may.
        max_episode_steps: the time limit in env steps, for both maps.

    Raises:
        UsageError: the map is unknown, or `success_rate` is not a probability.
    """

    map_name: str = "4x4"
    is_slippery: bool = True
    success_rate: float = 1 / 3
    max_episode_steps: int = 100
    env_id: ClassVar[str] = "FrozenLake-v1"

    def __post_init__(self) -> None:
        """Check map and probability."""
        if self.map_name not in MAPS:
            raise UsageError(
                f"`map_name` of {self.env_id} must be {' or '.join(MAPS)}, got `{self.map_name}`"
                f"{did_you_mean(self.map_name, MAPS)}; try --env-arg map_name=8x8"
            )
        if not 0 <= self.success_rate <= 1:
            raise UsageError(
                f"`success_rate` of {self.env_id} must be a probability in [0, 1], "
                f"got {self.success_rate}; try --env-arg success_rate=0.8"
            )

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: one-hot cells observed, four directions."""
        high = np.ones(len(self._lake.over), np.float32)
        observation = Box(np.zeros_like(high), high, high.dtype)
        own = OwnSpaces(Discrete(len(high)), Discrete(4))  # as in Gymnasium
        return EnvSpec(self.env_id, observation, Discrete(4), self.max_episode_steps, own=own)

    def reset(self, key: PRNGKeyArray) -> FrozenLakeState:
        """Return the only initial state."""
        del key
        return FrozenLakeState(jnp.int32(self._lake.start), jnp.zeros((), jnp.int32))

    def step(self, state: FrozenLakeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state after a step left (0), down (1), right (2) or up (3), or a slip."""
        slip = 0
        if self.is_slippery:
            drawn = jax.random.uniform(key)
            slip = (drawn > self.chances[0]).astype(jnp.int32)
            slip = slip + (drawn > self.chances[0] + self.chances[1]).astype(jnp.int32) - 1
        place = jnp.asarray(self._lake.following)[state.place, (action + slip) % 4]
        terminated = jnp.asarray(self._lake.over)[place]
        env_steps = state.env_steps + 1
        truncated = ~terminated & (env_steps >= self.max_episode_steps)
        reward = jnp.asarray(self._lake.goal)[place].astype(jnp.float32)
        return NativeStep(FrozenLakeState(place, env_steps), reward, terminated, truncated)

    def observe(self, state: FrozenLakeState) -> Float[Array, " S"]:
        """Return 1 for the current cell, 0 for all others."""
        return (jnp.arange(len(self._lake.over)) == state.place).astype(jnp.float32)

    def optimum(self, state: FrozenLakeState) -> Float[Array, ""]:
        """Return the largest probability of reaching the goal within the time limit."""
        left = jnp.maximum(self.max_episode_steps - state.env_steps, 0)
        return jnp.asarray(_chances_of_goal(self), jnp.float32)[left, state.place]

    @property
    def _lake(self) -> Lake:
        return lake(self.map_name)

    @property
    def chances(self) -> tuple[float, float, float]:
        """The probabilities of the three `SLIPS`."""
        if not self.is_slippery:
            return 0.0, 1.0, 0.0
        aside = (1 - self.success_rate) / 2
        return aside, self.success_rate, aside


@dataclass(frozen=True)
class FrozenLake8x8(FrozenLake):
    """The larger lake with its own id and twice the time limit."""

    map_name: str = "8x8"
    max_episode_steps: int = 200
    env_id: ClassVar[str] = "FrozenLake8x8-v1"


@cache
def lake(map_name: str) -> Lake:
    """Return the map with a name."""
    letters = np.array([list(row) for row in MAPS[map_name]])
    rows, columns = np.indices(letters.shape).reshape(2, -1, 1)
    last_row, last_column = np.array(letters.shape) - 1
    reached = (
        np.clip(rows + STEPS[:, 0], 0, last_row),
        np.clip(columns + STEPS[:, 1], 0, last_column),
    )
    cells = letters.ravel()
    goal = cells == "G"
    following = np.ravel_multi_index(reached, letters.shape).astype(np.int32)
    return Lake(int(np.argmax(cells == "S")), following, goal | (cells == "H"), goal)


@cache
def transitions(env: FrozenLake) -> Float[np.ndarray, "S 4 S"]:
    """Return P(s' | s, a); holes and goal are absorbing."""
    of, states = lake(env.map_name), np.arange(len(lake(env.map_name).over))
    chances: Any = np.zeros((len(states), 4, len(states)))
    for slip, chance in zip(SLIPS, env.chances, strict=True):
        for action in range(4):
            chances[states, action, of.following[:, (action + slip) % 4]] += chance
    chances[of.over] = np.eye(len(states))[of.over][:, None]
    return chances


@cache
def _chances_of_goal(env: FrozenLake) -> Float[np.ndarray, "H S"]:
    """Return V_h(s), h = 0 .. limit: the largest probability of reaching the goal in h env steps.

        V_h(s) = max_a Σ_s' P(s' | s, a) ([s' is the goal] + [s' is ice] V_{h-1}(s')), V_0 = 0

    V is 0 in holes and at the goal.
    """
    of, chances = lake(env.map_name), transitions(env)
    values = [np.zeros(len(of.over))]
    for _ in range(env.max_episode_steps):
        worth = of.goal + ~of.over * values[-1]
        values.append(np.where(of.over, 0.0, (chances @ worth).max(1)))
    return np.stack(values)
