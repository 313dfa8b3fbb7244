"""Pendulum-v1 in JAX: swing up a pendulum with a weak motor and hold it upright.

Source: Gymnasium's Pendulum-v1: semi-implicit Euler steps of 0.05 s; a cost of angle, speed and
torque before the env step. Only the time limit ends an episode.
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

MAX_SPEED = 8.0  # rad/s
MAX_TORQUE = 2.0  # N m
SECONDS = 0.05  # one env step
START = np.array([np.pi, 1.0], np.float32)  # largest initial angle and speed


class PendulumState(NamedTuple):
    """Angle from upright (rad), angular velocity (rad/s), and the env steps."""

    physics: Float[Array, " 2"]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class Pendulum:
    """The environment: a pendulum of 1 kg and 1 m.

    Attributes:
        g: gravity in m/s².
        max_episode_steps: the time limit, in env steps.
    """

    g: float = 10.0
    max_episode_steps: int = 200

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: cosine, sine and speed observed, one torque."""
        high = np.array([1.0, 1.0, MAX_SPEED], np.float32)
        torque = np.array([MAX_TORQUE], np.float32)
        observation = Box(-high, high, high.dtype)
        action = Box(-torque, torque, torque.dtype)
        limit = self.max_episode_steps
        return EnvSpec("Pendulum-v1", observation, action, limit, terminates=False)

    def reset(self, key: PRNGKeyArray) -> PendulumState:
        """Return an initial state: angle uniform in [-π, π], speed uniform in [-1, 1]."""
        physics = jax.random.uniform(key, (2,), minval=-START, maxval=START)
        return PendulumState(physics, jnp.zeros((), jnp.int32))

    def step(
        self, state: PendulumState, action: Float[Array, " 1"], key: PRNGKeyArray
    ) -> NativeStep:
        """Return the state 0.05 s later; the reward is -(θ² + 0.1 θ'² + 0.001 u²) before it.

        θ is in [-π, π], θ' the speed, u the torque after clipping to [-2, 2].
        """
        del key
        torque = jnp.clip(action[0], -MAX_TORQUE, MAX_TORQUE)
        angle, speed = _within_a_turn(state.physics[0]), state.physics[1]
        reward = -(angle**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = speed + SECONDS * (1.5 * self.g * jnp.sin(angle) + 3.0 * torque)
        speed = jnp.clip(speed, -MAX_SPEED, MAX_SPEED)
        # Uses the angle in [-π, π]: an angle that adds up all turns would lose precision.
        physics = jnp.stack([angle + SECONDS * speed, speed])
        env_steps = state.env_steps + 1
        truncated = env_steps >= self.max_episode_steps
        after = PendulumState(physics, env_steps)
        return NativeStep(after, reward, jnp.zeros_like(truncated), truncated)

    def observe(self, state: PendulumState) -> Float[Array, " 3"]:
        """Return the angle's cosine and sine, and the angular velocity."""
        angle, speed = state.physics
        return jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])


def _within_a_turn(angle: Float[Array, ""]) -> Float[Array, ""]:
    """Return an angle modulo 2π, in [-π, π]."""
    return angle - 2 * jnp.pi * jnp.round(angle / (2 * jnp.pi))
