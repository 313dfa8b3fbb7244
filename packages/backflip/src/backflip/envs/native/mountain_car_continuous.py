"""MountainCarContinuous-v0 in JAX: MountainCar with a continuous force.

Source: Gymnasium's MountainCarContinuous-v0: the valley of MountainCar-v0, reward 100 at position
0.45, minus 0.1 u² for the action u in every env step.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.core.spaces import Box
from backflip.core.spec import EnvSpec
from backflip.envs.native.mountain_car import MountainCar, MountainCarState, roll
from backflip.envs.spec import NativeStep

GOAL = 0.45
POWER = 0.0015


@dataclass(frozen=True)
class MountainCarContinuous:
    """The environment.

    Attributes:
        goal_velocity: the least velocity required at the goal.
        max_episode_steps: the time limit, in env steps.
    """

    goal_velocity: float = 0.0
    max_episode_steps: int = 999

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: two numbers observed, one action in [-1, 1]."""
        one = np.ones(1, np.float32)
        observation, action = MountainCar().spec.observation, Box(-one, one, one.dtype)
        return EnvSpec("MountainCarContinuous-v0", observation, action, self.max_episode_steps)

    def reset(self, key: PRNGKeyArray) -> MountainCarState:
        """Return an initial state: at rest, position uniform in [-0.6, -0.4]."""
        return MountainCar().reset(key)

    def step(
        self, state: MountainCarState, action: Float[Array, " 1"], key: PRNGKeyArray
    ) -> NativeStep:
        """Return the state after a force of `action`, clipped to [-1, 1].

        Gymnasium clips the force, but not the action in the reward. Here both are clipped, as our
        host adapter clips actions before the environment.
        """
        del key
        force = jnp.clip(action[0], -1.0, 1.0)
        physics = roll(state.physics, POWER * force)
        position, velocity = physics
        terminated = (position >= GOAL) & (velocity >= self.goal_velocity)
        reward = jnp.where(terminated, 100.0, 0.0) - 0.1 * force**2
        env_steps = state.env_steps + 1
        truncated = ~terminated & (env_steps >= self.max_episode_steps)
        return NativeStep(MountainCarState(physics, env_steps), reward, terminated, truncated)

    def observe(self, state: MountainCarState) -> Float[Array, " 2"]:
        """Return position and velocity."""
        return state.physics
