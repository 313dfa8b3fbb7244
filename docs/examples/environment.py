"""An environment of your own in JAX: push a point on a line to 0.

    cd docs/examples
    backflip look environment:Line
    backflip train ppo environment:Line
    backflip train ppo environment:Line --env-arg width=2.0

A class needs `spec`, `reset`, `step` and `observe` (`backflip.envs.spec.NativeEnv`), which are pure
functions of one environment. backflip runs many with `jax.vmap`, begins a new episode after the end
of one, and clips actions to their bounds.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spaces import Box
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeStep

LIMIT = 20  # env steps per episode


class LineState(NamedTuple):
    """Everything that the next env step depends on."""

    position: Float[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class Line:
    """A point between -width and width; an action moves it by at most 0.2.

    `--env-arg` sets the fields.
    """

    width: float = 1.0

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification; only the time limit ends an episode."""
        width = np.full(1, self.width, np.float32)
        push = np.full(1, 0.2, np.float32)
        observation = Box(-width, width, np.dtype(np.float32))
        action = Box(-push, push, np.dtype(np.float32))
        return EnvSpec("environment:Line", observation, action, LIMIT, terminates=False)

    def reset(self, key: PRNGKeyArray) -> LineState:
        """Return an initial state with a random position."""
        position = jax.random.uniform(key, (), jnp.float32, -self.width, self.width)
        return LineState(position, jnp.zeros((), jnp.int32))

    def step(self, state: LineState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """Return the state after a push; the reward is minus the distance to 0."""
        del key  # the env step is deterministic
        position = jnp.clip(state.position + action[0], -self.width, self.width)
        after = LineState(position, state.env_steps + 1)
        truncated = after.env_steps >= LIMIT
        return NativeStep(after, -jnp.abs(position), jnp.zeros((), bool), truncated)

    def observe(self, state: LineState) -> Float[Array, " 1"]:
        """Return the observation."""
        return state.position[None]
