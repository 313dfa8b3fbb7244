"""MountainCar-v0 in JAX: swing an underpowered car up to the right end of a valley.

Source: Moore 1990, as in Gymnasium's MountainCar-v0: three pushes, reward -1 for every env step
until the car reaches position 0.5.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeStep

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07  # per env step
GOAL = 0.5
PUSH = 0.001
GRAVITY = 0.0025
START = (-0.6, -0.4)  # range of the initial position


class MountainCarState(NamedTuple):
    """Position, velocity (per env step), and the env steps."""

    physics: Float[Array, " 2"]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class MountainCar:
    """The environment.

    Attributes:
        goal_velocity: the least velocity required at the goal.
        max_episode_steps: the time limit, in env steps.
    """

    goal_velocity: float = 0.0
    max_episode_steps: int = 200

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: two numbers observed, three pushes."""
        low = np.array([MIN_POSITION, -MAX_SPEED], np.float32)
        high = np.array([MAX_POSITION, MAX_SPEED], np.float32)
        observation = Box(low, high, high.dtype)
        return EnvSpec("MountainCar-v0", observation, Discrete(3), self.max_episode_steps)

    def reset(self, key: PRNGKeyArray) -> MountainCarState:
        """Return an initial state: at rest, position uniform in [-0.6, -0.4]."""
        position = jax.random.uniform(key, minval=START[0], maxval=START[1])
        physics = jnp.stack([position, jnp.zeros_like(position)])
        return MountainCarState(physics, jnp.zeros((), jnp.int32))

    def step(
        self, state: MountainCarState, action: Int[Array, ""], key: PRNGKeyArray
    ) -> NativeStep:
        """Return the state after a push to the left (0), none (1) or to the right (2)."""
        del key
        push = PUSH * (action.astype(jnp.float32) - 1)
        physics = roll(state.physics, push)
        position, velocity = physics
        terminated = (position >= GOAL) & (velocity >= self.goal_velocity)
        env_steps = state.env_steps + 1
        truncated = ~terminated & (env_steps >= self.max_episode_steps)
        reward = jnp.full_like(position, -1.0)
        return NativeStep(MountainCarState(physics, env_steps), reward, terminated, truncated)

    def observe(self, state: MountainCarState) -> Float[Array, " 2"]:
        """Return position and velocity."""
        return state.physics


def roll(physics: Float[Array, " 2"], push: Float[Array, ""]) -> Float[Array, " 2"]:
    """Return position and velocity one env step later, with gravity 0.0025 cos 3x.

    The left end is a wall that stops the car.
    """
    position, velocity = physics
    velocity = velocity + push - GRAVITY * jnp.cos(3 * position)
    velocity = jnp.clip(velocity, -MAX_SPEED, MAX_SPEED)
    position = jnp.clip(position + velocity, MIN_POSITION, MAX_POSITION)
    velocity = jnp.where((position <= MIN_POSITION) & (velocity < 0), 0.0, velocity)
    return jnp.stack([position, velocity])
