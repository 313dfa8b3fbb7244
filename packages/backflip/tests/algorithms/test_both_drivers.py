"""Both drivers give returns of one distribution; PPO's test is in test_host.py, DQN's in its own.

Ten seeds in JAX and ten outside it, the mean return of each in the second half of learning, and how
likely means lie so far apart if it did not matter which is which.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from backflip.algorithms.a2c import a2c
from backflip.algorithms.cem import cem
from backflip.algorithms.ddpg import ddpg
from backflip.algorithms.entries.a2c import A2CConfig
from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.entries.ddpg import DDPGConfig
from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.entries.td3 import TD3Config
from backflip.algorithms.entries.vpg import VPGConfig
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.sac import sac
from backflip.algorithms.td3 import td3
from backflip.algorithms.vpg import vpg
from backflip.core.types import Transition
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.registry import make_host

SEEDS = list(range(10))
LIMIT = 100  # env steps, so that time limits cut many episodes
CARTPOLE = CartPole(max_episode_steps=LIMIT)
PENDULUM = Pendulum(max_episode_steps=LIMIT)
FROM_REPLAY: dict[str, Any] = {
    "env_steps": 8_192,
    "num_envs": 8,
    "rollout_length": 8,
    "updates_per_step": 0.5,
    "batch_size": 64,
    "buffer_size": 8_192,
    "learning_starts": 1_024,
    "actor_learning_rate": 1e-3,
    "critic_learning_rate": 1e-3,
    "discount": 0.95,
    "tau": 0.02,
    "hidden": (32, 32),
}


class Subject(NamedTuple):
    """An algorithm and its settings, an environment, and what a random policy gets there."""

    build: Callable[..., Algorithm]
    config: Any
    env: Any
    random: float


ALL = {
    "a2c": Subject(
        a2c,
        A2CConfig(
            env_steps=40_000,
            learning_rate=2e-3,
            discount=0.95,
            entropy_coef=0.0,
            max_grad_norm=10.0,
        ),
        CARTPOLE,
        22,
    ),
    "vpg": Subject(
        vpg,
        VPGConfig(
            env_steps=20_480,
            rollout_length=64,
            learning_rate=1e-2,
            value_learning_rate=3e-3,
            value_gradient_steps=20,
        ),
        CARTPOLE,
        22,
    ),
    "cem": Subject(cem, CEMConfig(env_steps=20_000, num_envs=20, rollout_length=100), CARTPOLE, 22),
    "ddpg": Subject(ddpg, DDPGConfig(**FROM_REPLAY), PENDULUM, -600),
    "td3": Subject(td3, TD3Config(**FROM_REPLAY), PENDULUM, -600),
    "sac": Subject(
        sac,
        SACConfig(**FROM_REPLAY, initial_temperature=0.1, temperature_learning_rate=1e-3),
        PENDULUM,
        -600,
    ),
}
each = pytest.mark.parametrize("name", ALL)


def means(driver: Driver, updates: int) -> np.ndarray:
    """The mean return of each seed in the second half of learning."""
    learners = driver.fill_replay(driver.start(SEEDS))
    _, phase = driver.phase(updates)(learners, np.zeros(len(SEEDS)))
    driver.close()
    half = phase.metrics["episodes"].shape[1] // 2
    episodes = np.asarray(phase.metrics["episodes"])[:, half:]
    total = np.nan_to_num(np.asarray(phase.metrics["episode_return_mean"])[:, half:]) * episodes
    return total.sum(1) / episodes.sum(1)


def in_jax(name: str) -> np.ndarray:
    subject = ALL[name]
    algorithm = subject.build(subject.config, subject.env.spec)
    return means(NativeDriver(subject.env, algorithm), subject.config.updates)


def outside(name: str, change: Any = None) -> np.ndarray:
    """Of Gymnasium's environment; `change` changes its batches first."""
    subject = ALL[name]
    algorithm = subject.build(subject.config, subject.env.spec)
    if change is not None:
        right = algorithm.update

        def update(state: Any, batch: Transition, key: Any) -> Any:
            return right(state, change(batch), key)

        algorithm = algorithm._replace(update=update)
    env_id, args = f"gymnasium:{subject.env.spec.id}", {"max_episode_steps": LIMIT}
    driver = HostDriver(lambda rows: make_host(env_id, args, rows), algorithm)
    return means(driver, subject.config.updates)


def likely(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of a permutation test of the difference of means."""

    def apart(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return x.mean(axis) - y.mean(axis)

    dealt = stats.permutation_test((one, other), apart, n_resamples=20_000, rng=0)
    return float(dealt.pvalue)


@pytest.mark.slow
@each
def test_returns_while_learning_are_of_the_same_distribution(name: str) -> None:
    one, other = in_jax(name), outside(name)
    assert likely(one, other) > 0.005
    assert min(one.mean(), other.mean()) > ALL[name].random + 10


def results_of_the_neighbours_action(batch: Transition) -> Transition:
    def neighbours(x: Any) -> Any:
        return jnp.roll(x, 1, axis=1)

    return batch._replace(
        reward=neighbours(batch.reward),
        terminated=neighbours(batch.terminated),
        truncated=neighbours(batch.truncated),
        valid=neighbours(batch.valid),
    )


@pytest.mark.slow
@each
def test_mixed_up_rows_outside_jax_change_the_returns(name: str) -> None:
    assert likely(in_jax(name), outside(name, results_of_the_neighbours_action)) < 1e-3
