"""MountainCarContinuous-v0 in JAX: the car between the hills, with a pedal in place of pushes.

Source: Gymnasium's MountainCarContinuous-v0: the same hill as MountainCar-v0, arrival at 0.45 pays
100, every step costs 0.1 u² for the pedal u.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.core.spec import Box, EnvSpec
from backflip.envs.native.mountain_car import MountainCar, MountainCarState, roll
from backflip.envs.spec import NativeStep

GOAL = 0.45
POWER = 0.0015


@dataclass(frozen=True)
class MountainCarContinuous:
    """The car with a pedal.

    Attributes:
        goal_velocity: the least velocity that counts as having arrived.
        max_episode_steps: the time limit, in env steps.
    """

    goal_velocity: float = 0.0
    max_episode_steps: int = 999

    @property
    def spec(self) -> EnvSpec:
        """Two numbers in, one out."""
        pedal = np.ones(1, np.float32)
        observation, action = MountainCar().spec.observation, Box(-pedal, pedal, pedal.dtype)
        return EnvSpec("MountainCarContinuous-v0", observation, action, self.max_episode_steps)

    def reset(self, key: PRNGKeyArray) -> MountainCarState:
        """Return a car at rest somewhere in the valley."""
        return MountainCar().reset(key)

    def step(
        self, state: MountainCarState, action: Float[Array, " 1"], key: PRNGKeyArray
    ) -> NativeStep:
        """Return the state after `action`, clipped to [-1, 1], has driven the car.

        Gymnasium's environment clips the force but charges for the unclipped pedal. Here both are
        clipped, as they are for every bounded action that a host environment is given.
        """
        del key
        pedal = jnp.clip(action[0], -1.0, 1.0)
        physics = roll(state.physics, POWER * pedal)
        position, velocity = physics
        terminated = (position >= GOAL) & (velocity >= self.goal_velocity)
        reward = jnp.where(terminated, 100.0, 0.0) - 0.1 * pedal**2
        env_steps = state.env_steps + 1
        truncated = ~terminated & (env_steps >= self.max_episode_steps)
        return NativeStep(MountainCarState(physics, env_steps), reward, terminated, truncated)

    def observe(self, state: MountainCarState) -> Float[Array, " 2"]:
        """Return position and velocity."""
        return state.physics
