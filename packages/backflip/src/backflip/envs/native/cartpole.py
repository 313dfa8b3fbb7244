"""CartPole-v1 in JAX: keep a pole on a cart upright by pushing the cart left or right.

Source: Barto, Sutton & Anderson 1983, as in Gymnasium's CartPole-v1: explicit Euler steps of
0.02 s, reward 1 for every env step, termination when cart or pole leave their limits.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeStep

GRAVITY = 9.8  # m/s²
POLE_MASS = 0.1  # kg
TOTAL_MASS = 1.0 + POLE_MASS
HALF_LENGTH = 0.5  # half the length of the pole, in m
FORCE = 10.0  # N
SECONDS = 0.02  # one env step
MAX_POSITION = 2.4  # m from the middle of the track
MAX_ANGLE = 12 * np.pi / 180  # radians from upright
START = 0.05  # largest component of the initial state


class CartPoleState(NamedTuple):
    """Position, velocity, angle and angular velocity (m, rad, s), and the env steps."""

    physics: Float[Array, " 4"]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class CartPole:
    """The environment.

    Attributes:
        sutton_barto_reward: reward -1 for termination and 0 otherwise, instead of always 1.
        max_episode_steps: the time limit, in env steps.
    """

    sutton_barto_reward: bool = False
    max_episode_steps: int = 500

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: four numbers observed, two pushes."""
        high = np.array([2 * MAX_POSITION, np.inf, 2 * MAX_ANGLE, np.inf], np.float32)
        observation = Box(-high, high, high.dtype)
        return EnvSpec("CartPole-v1", observation, Discrete(2), self.max_episode_steps)

    def reset(self, key: PRNGKeyArray) -> CartPoleState:
        """Return an initial state near rest, each component uniform in [-0.05, 0.05]."""
        physics = jax.random.uniform(key, (4,), minval=-START, maxval=START)
        return CartPoleState(physics, jnp.zeros((), jnp.int32))

    def step(self, state: CartPoleState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state 0.02 s after a push to the left (0) or to the right (1)."""
        del key
        force = jnp.where(action == 1, FORCE, -FORCE)
        physics = state.physics + SECONDS * _derivative(state.physics, force)
        env_steps = state.env_steps + 1
        terminated = (jnp.abs(physics[0]) > MAX_POSITION) | (jnp.abs(physics[2]) > MAX_ANGLE)
        truncated = ~terminated & (env_steps >= self.max_episode_steps)
        after = CartPoleState(physics, env_steps)
        return NativeStep(after, self._reward(terminated), terminated, truncated)

    def observe(self, state: CartPoleState) -> Float[Array, " 4"]:
        """Return position, velocity, angle and angular velocity."""
        return state.physics

    def _reward(self, terminated: Bool[Array, ""]) -> Float[Array, ""]:
        if self.sutton_barto_reward:
            return -terminated.astype(jnp.float32)
        return jnp.ones_like(terminated, jnp.float32)


def _derivative(physics: Float[Array, " 4"], force: Float[Array, ""]) -> Float[Array, " 4"]:
    """Return the time derivative of the state with a force along the track, without friction.

        θ'' = (g sin θ - cos θ u) / (l (4/3 - m cos² θ / M)),   u = (F + m l θ'² sin θ) / M
        x'' = u - m l θ'' cos θ / M

    l is half the pole's length, m its mass, M the total mass.
    """
    _, velocity, angle, spin = physics
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    push = (force + POLE_MASS * HALF_LENGTH * spin**2 * sin) / TOTAL_MASS
    inertia = HALF_LENGTH * (4 / 3 - POLE_MASS * cos**2 / TOTAL_MASS)
    spin_change = (GRAVITY * sin - cos * push) / inertia
    acceleration = push - POLE_MASS * HALF_LENGTH * spin_change * cos / TOTAL_MASS
    return jnp.stack([velocity, acceleration, spin, spin_change])
