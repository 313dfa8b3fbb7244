"""The example algorithm learns, and its returns are those of the definition."""

from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest
from tests.modules import module_at

from backflip.core.types import Transition
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The module, found by the name that its entry has for it."""
    return module_at("docs/examples/algorithm.py", "algorithm")


@pytest.mark.medium
def test_returns_equal_the_definition(example: ModuleType) -> None:
    rng = np.random.default_rng(0)
    reward = rng.normal(size=(6, 1)).astype(np.float32)
    ended = np.array([[False], [True], [False], [False], [True], [False]])
    none = jnp.zeros_like(jnp.asarray(ended))
    blank = jnp.zeros((6, 1, 1))
    batch = Transition(blank, none, jnp.asarray(reward), jnp.asarray(ended), none, blank, ~none, ())
    expected = []
    for t in range(6):
        total, weight = 0.0, 1.0
        for k in range(t, 6):
            total += weight * reward[k, 0]
            weight *= 0.9
            if ended[k, 0]:
                break
        expected.append([total])
    np.testing.assert_allclose(example.discounted_returns(batch, 0.9), expected, rtol=1e-5)


@pytest.mark.slow
def test_it_learns_cartpole_on_several_seeds(example: ModuleType) -> None:
    env, entry = CartPole(), example.ENTRY
    config = entry.config(env_steps=160_000)
    driver = NativeDriver(env, entry.build(config, env.spec))
    seeds = [0, 1, 2]
    learners = driver.start(seeds)
    before = driver.evaluate(learners, seeds, episodes=50).returns.mean(1)
    learners, _ = driver.phase(config.updates)(learners, np.zeros(3))
    after = driver.evaluate(learners, seeds, episodes=50).returns.mean(1)
    assert (after > 100).all(), (before, after)
