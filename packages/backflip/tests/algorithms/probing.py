"""Probes: tasks with known answers, and the error of an algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from backflip.algorithms.interface import Algorithm
from backflip.core.spec import within
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.native import probes

SEEDS = [0, 1, 2]


@dataclass(frozen=True)
class Probe:
    """An environment and what is right: V, and the greedy action, of some observations.

    Discounted by 0.9. What is right is off by less than `tolerance` in `error`; what is broken, by
    more than twice that. Where NaN is wanted, any answer will do.
    """

    env: Any
    shown: Sequence[Any]
    values: Sequence[float] | None = None
    actions: Sequence[float] | None = None
    tolerance: float = 0.1


PROBES = {
    "constant": Probe(probes.ConstantReward(), [0.0], values=[1.0]),
    "observed": Probe(probes.ObservedReward(), [-1.0, 1.0], values=[-1.0, 1.0]),
    "delayed": Probe(probes.DelayedReward(), [0.0, 1.0], values=[0.9, 1.0], tolerance=0.04),
    "chosen": Probe(probes.ChosenReward(), [0.0], values=[1.0], actions=[1]),
    "matched": Probe(probes.MatchedReward(), [-1.0, 1.0], values=[1.0, 1.0], actions=[0, 1]),
    "endless": Probe(probes.EndlessReward(), [0.0], values=[10.0]),
    "continuous": Probe(probes.QuadraticReward(), [0.0], actions=[0.5]),
}


def answers(driver: Driver, probe: Probe, updates: int) -> tuple[Any, Any]:
    """Values (if they are asked for) and greedy actions after learning, (seeds, shown)."""
    learners = driver.fill_replay(driver.start(SEEDS))
    learners, _ = driver.phase(updates)(learners, np.zeros(len(SEEDS)))
    algorithm, obs = driver.algorithm, jnp.asarray(probe.shown, jnp.float32)
    obs = obs.reshape(len(probe.shown), -1)

    def ask(state: Any) -> tuple[Any, Any]:
        value: Any = ()
        if probe.values is not None:
            assert algorithm.assess is not None
            value = algorithm.assess(state, obs)["value"]
        return value, algorithm.evaluation_action(state, obs, jax.random.key(0)).reshape(
            len(probe.shown)
        )

    state = jax.tree.map(jnp.asarray, jax.tree.map(np.asarray, learners.algorithm))
    value, action = jax.jit(jax.vmap(ask))(state)
    return value, within(driver.spec.action, np.asarray(action))


def error(driver: Driver, probe: Probe, updates: int) -> float:
    """The error of the worst seed: of values relative to the largest, of actions absolute."""
    value, action = answers(driver, probe, updates)
    wrong = 0.0
    if probe.values is not None:
        off = np.abs(np.asarray(value) - np.array([probe.values]))
        wrong += float(off.max() / (np.abs(probe.values).max() or 1.0))
    if probe.actions is not None:
        wrong += float(np.nanmax(np.abs(action - np.array([probe.actions]))))
    return wrong


def native(probe: Probe, algorithm: Algorithm) -> Driver:
    return NativeDriver(probe.env, algorithm)


class Endless(gymnasium.Env[Any, Any]):
    """The endless probe again, outside JAX: pays 1 a step, cut after 10."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(1)
    age = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start another ten steps."""
        self.age = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Pay 1."""
        self.age += 1
        return np.zeros(1, np.float32), 1.0, False, self.age >= 10, {}


def endless_on_the_host(algorithm: Algorithm) -> HostDriver:
    """A driver of the endless probe outside JAX, whose batches have reset rows."""
    return HostDriver(lambda rows: GymnasiumEnv.of("endless", Endless, rows), algorithm)
