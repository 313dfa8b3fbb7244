"""PPO explores with noise that is correlated over env steps if `noise_color` says so."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.ppo import ppo
from backflip.core.types import Transition
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.registry import make_host, make_native

LENGTH, ENVS = 64, 32


def config(color: float) -> PPOConfig:
    return PPOConfig(
        env_steps=10_000,
        num_envs=ENVS,
        rollout_length=LENGTH,
        epochs=1,
        minibatches=1,
        hidden=(4,),
        noise_color=color,
    )


def spying(algorithm: Algorithm, seen: list[Any]) -> Algorithm:
    """The algorithm, whose `update` keeps its batch and learns nothing."""

    def update(state: Any, batch: Transition, key: Any) -> Any:
        jax.debug.callback(lambda b: seen.append(jax.tree.map(np.asarray, b)), batch)
        return state, {}

    return algorithm._replace(update=update)


def batch_of(where: str, color: float, updates: int = 1) -> list[Transition]:
    """The batches of one phase, in an environment in JAX or outside."""
    seen: list[Transition] = []
    if where == "native":
        env = make_native("Pendulum-v1", {})
        driver: Any = NativeDriver(env, spying(ppo(config(color), env.spec), seen))
    else:
        spec = make_host("fixed:Hopper-v5", {}, 1).spec
        learner = spying(ppo(config(color), spec), seen)
        driver = HostDriver(lambda rows: make_host("fixed:Hopper-v5", {}, rows), learner)
    driver.phase(updates)(driver.start([5]), None)
    jax.effects_barrier()
    driver.close()
    return seen


def lag_correlation(batch: Transition) -> float:
    """Correlation of neighbouring actions, whose mean hardly depends on the state at first."""
    action = np.asarray(batch.action).reshape(LENGTH, ENVS, -1)
    noise = action - action.mean((0, 1))
    return float((noise[1:] * noise[:-1]).mean() / noise.var())


@pytest.mark.medium
@pytest.mark.parametrize("where", ["native", pytest.param("host", marks=pytest.mark.slow)])
def test_neighbouring_actions_are_alike_only_with_a_color(where: str) -> None:
    pink, white = batch_of(where, 1.0)[0], batch_of(where, 0.0)[0]
    assert abs(lag_correlation(white)) < 0.1
    # Six octaves of equal power: (1/6) Σ_k (1 - 2^-k)
    assert lag_correlation(pink) == pytest.approx(np.mean(1 - 0.5 ** np.arange(6)), abs=0.15)


@pytest.mark.medium
@pytest.mark.parametrize("where", ["native", pytest.param("host", marks=pytest.mark.slow)])
def test_rollouts_have_noise_of_their_own(where: str) -> None:
    first, second = batch_of(where, 1.0, updates=2)
    assert not np.allclose(first.action, second.action)


@pytest.mark.medium
def test_log_probability_is_that_of_each_action_alone() -> None:
    """π(a|s) is the same distribution, whatever the noise of other env steps was."""
    spec = make_native("Pendulum-v1", {}).spec
    algorithm = ppo(config(1.0), spec)
    state, obs = algorithm.init(0), jnp.ones((512, 3))
    keys = jax.random.split(jax.random.key(1), algorithm.noise_octaves)
    action, info = algorithm.act(state, obs, keys)
    assert np.std(np.asarray(action)) == pytest.approx(1.0, abs=0.1)
    density = -0.5 * np.square(np.asarray(action)[:, 0]) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(np.asarray(info.log_prob), density, atol=0.02)


def test_discrete_policies_ignore_it() -> None:
    spec = make_native("CartPole-v1", {}).spec
    assert ppo(config(1.0), spec).noise_octaves == 0


@pytest.mark.slow
def test_sample_draws_independent_actions() -> None:
    spec = make_native("Pendulum-v1", {}).spec
    algorithm = ppo(config(1.0), spec)
    assert algorithm.sample is not None
    drawn = algorithm.sample(algorithm.init(0), jnp.ones((8, 3)), jax.random.key(0))
    assert drawn.shape == (8, 1)
