"""Acrobot-v1 in JAX: swing up two links that hang from a hinge and are driven at the elbow.

Source: Sutton & Barto 2018 (the "book" equations), as in Gymnasium's Acrobot-v1: one classical
Runge-Kutta step of 0.2 s, reward -1 for every env step until the tip is one link above the hinge.
Each link has 1 m, 1 kg and a moment of inertia of 1 kg m², with the centre of mass in the middle.
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

GRAVITY = 9.8  # m/s²
CENTRE = 0.5  # distance of a link's centre of mass from its joint, in m
INERTIA = 1.0  # moment of inertia of a link, kg m²
SECONDS = 0.2  # one env step
MAX_SPEEDS = np.array([4 * np.pi, 9 * np.pi], np.float32)  # rad/s
START = 0.1  # largest component of the initial state


class AcrobotState(NamedTuple):
    """Angles of shoulder and elbow, their angular velocities (rad, rad/s), and the env steps.

    The first angle is measured from hanging down.
    """

    physics: Float[Array, " 4"]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class Acrobot:
    """The environment.

    Attributes:
        max_episode_steps: the time limit, in env steps.
    """

    max_episode_steps: int = 500

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: six numbers observed, three torques."""
        high = np.concatenate([np.ones(4, np.float32), MAX_SPEEDS])
        observation = Box(-high, high, high.dtype)
        return EnvSpec("Acrobot-v1", observation, Discrete(3), self.max_episode_steps)

    def reset(self, key: PRNGKeyArray) -> AcrobotState:
        """Return an initial state near hanging at rest, each component uniform in [-0.1, 0.1]."""
        physics = jax.random.uniform(key, (4,), minval=-START, maxval=START)
        return AcrobotState(physics, jnp.zeros((), jnp.int32))

    def step(self, state: AcrobotState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state 0.2 s later with a torque of `action` - 1 at the elbow."""
        del key
        torque = action.astype(jnp.float32) - 1
        physics = _runge_kutta(state.physics, torque)
        angles = physics[:2] - 2 * jnp.pi * jnp.round(physics[:2] / (2 * jnp.pi))
        speeds = jnp.clip(physics[2:], -MAX_SPEEDS, MAX_SPEEDS)
        terminated = -jnp.cos(angles[0]) - jnp.cos(angles[0] + angles[1]) > 1
        reward = jnp.where(terminated, 0.0, -1.0)
        env_steps = state.env_steps + 1
        truncated = ~terminated & (env_steps >= self.max_episode_steps)
        after = AcrobotState(jnp.concatenate([angles, speeds]), env_steps)
        return NativeStep(after, reward, terminated, truncated)

    def observe(self, state: AcrobotState) -> Float[Array, " 6"]:
        """Return cosine and sine of both angles, then both angular velocities."""
        first, second, *speeds = state.physics
        turns = [jnp.cos(first), jnp.sin(first), jnp.cos(second), jnp.sin(second)]
        return jnp.stack([*turns, *speeds])


def _runge_kutta(physics: Float[Array, " 4"], torque: Float[Array, ""]) -> Float[Array, " 4"]:
    """Return the state after one step of the classical fourth-order method."""
    first = _derivative(physics, torque)
    second = _derivative(physics + SECONDS / 2 * first, torque)
    third = _derivative(physics + SECONDS / 2 * second, torque)
    fourth = _derivative(physics + SECONDS * third, torque)
    return physics + SECONDS / 6 * (first + 2 * second + 2 * third + fourth)


def _derivative(physics: Float[Array, " 4"], torque: Float[Array, ""]) -> Float[Array, " 4"]:
    """Return the time derivative of the state by the book's equations of motion, with m = l = 1.

        d₁ = c² + 1 + c² + 2c cos θ₂ + 2I,   d₂ = c² + c cos θ₂ + I
        φ₂ = c g sin(θ₁ + θ₂)
        φ₁ = -c θ₂'² sin θ₂ - 2c θ₂' θ₁' sin θ₂ + (c + 1) g sin θ₁ + φ₂
        θ₂'' = (τ + (d₂/d₁) φ₁ - c θ₁'² sin θ₂ - φ₂) / (c² + I - d₂²/d₁)
        θ₁'' = -(d₂ θ₂'' + φ₁) / d₁

    c is the distance of a link's centre of mass from its joint. The book's cos(θ - π/2) is sin θ.
    """
    angle1, angle2, speed1, speed2 = physics
    sin2, cos2 = jnp.sin(angle2), jnp.cos(angle2)
    d1 = 2 * CENTRE**2 + 1 + 2 * CENTRE * cos2 + 2 * INERTIA
    d2 = CENTRE**2 + CENTRE * cos2 + INERTIA
    phi2 = CENTRE * GRAVITY * jnp.sin(angle1 + angle2)
    swing = -CENTRE * speed2 * (speed2 + 2 * speed1) * sin2
    phi1 = swing + (CENTRE + 1) * GRAVITY * jnp.sin(angle1) + phi2
    driven = torque + d2 / d1 * phi1 - CENTRE * speed1**2 * sin2 - phi2
    change2 = driven / (CENTRE**2 + INERTIA - d2**2 / d1)
    change1 = -(d2 * change2 + phi1) / d1
    return jnp.stack([speed1, speed2, change1, change2])
