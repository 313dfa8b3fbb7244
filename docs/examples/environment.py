"""An environment of your own in JAX: a point on a line that is to be pushed to 0.

    cd docs/examples
    backflip look environment:Line
    backflip train ppo environment:Line
    backflip train ppo environment:Line --env-arg width=2.0

A class needs `spec`, `reset`, `step` and `observe` (`backflip.envs.spec.NativeEnv`). All of them
are pure functions of one environment: backflip runs many at once with `jax.vmap`, begins the next
episode after an end, and moves actions outside the bounds to the nearest bound.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spec import Box, EnvSpec
from backflip.envs.spec import NativeStep

LIMIT = 20  # env steps in an episode


class LineState(NamedTuple):
    """Everything that the next step depends on."""

    place: Float[Array, ""]
    age: Int[Array, ""]


@dataclass(frozen=True)
class Line:
    """A point between -width and width; an action moves it by at most 0.2.

    The fields are what `--env-arg` can set.
    """

    width: float = 1.0

    @property
    def spec(self) -> EnvSpec:
        """One number is observed, one chosen; only the time limit ends an episode."""
        ends = np.full(1, self.width, np.float32)
        push = np.full(1, 0.2, np.float32)
        observation = Box(-ends, ends, np.dtype(np.float32))
        action = Box(-push, push, np.dtype(np.float32))
        return EnvSpec("environment:Line", observation, action, LIMIT, terminates=False)

    def reset(self, key: PRNGKeyArray) -> LineState:
        """Return a random place at the start of an episode."""
        place = jax.random.uniform(key, (), jnp.float32, -self.width, self.width)
        return LineState(place, jnp.zeros((), jnp.int32))

    def step(self, state: LineState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """Return the state after a push; the reward is minus the distance to 0."""
        del key  # nothing here is random
        place = jnp.clip(state.place + action[0], -self.width, self.width)
        age = state.age + 1
        terminated = jnp.zeros((), bool)
        return NativeStep(LineState(place, age), -jnp.abs(place), terminated, age >= LIMIT)

    def observe(self, state: LineState) -> Float[Array, " 1"]:
        """Return what the agent sees."""
        return state.place[None]
