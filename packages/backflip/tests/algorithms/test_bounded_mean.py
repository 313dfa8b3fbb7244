"""The mean of a continuous policy can be kept within the action space, and σ above a bound."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.parts.stochastic_policy import bounded, with_least_log_std
from backflip.algorithms.ppo import ppo
from backflip.core.spaces import Box
from backflip.drivers.native import NativeDriver
from backflip.envs.registry import make_native

SPACE = Box(np.array([-1.0, 2.0], np.float32), np.array([3.0, 2.5], np.float32), np.dtype("f4"))


def test_three_means_by_hand() -> None:
    head = jnp.array([[0.0, 0.0], [1e6, -1e6], [2.0, 0.25]])
    tanh = np.tanh(1.0)
    expected = [[1.0, 2.25], [3.0, 2.0], [1.0 + 2 * tanh, 2.25 + 0.25 * tanh]]
    np.testing.assert_allclose(np.asarray(bounded(SPACE, head)), expected, rtol=1e-6)


def test_dimensions_without_two_bounds_keep_their_mean() -> None:
    infinity = np.float32(np.inf)
    low, high = np.array([-1.0, -infinity, 0.0]), np.array([1.0, infinity, infinity])
    head = jnp.array([[0.5, -7.0, 3.0]])
    found = bounded(Box(low, high, np.dtype("f4")), head)
    np.testing.assert_allclose(np.asarray(found), [[np.tanh(0.5), -7.0, 3.0]], rtol=1e-6)


@pytest.mark.medium
def test_slope_at_zero_is_one() -> None:
    slope = jax.jacobian(lambda x: bounded(SPACE, x[None])[0])(jnp.zeros(2))
    np.testing.assert_allclose(np.asarray(slope), np.eye(2), atol=1e-6)


@pytest.mark.medium
@pytest.mark.parametrize("bound_mean", [True, False])
def test_policy_with_large_outputs_explores_only_if_its_mean_is_bounded(bound_mean: bool) -> None:
    """Otherwise every sample is clipped to the largest action."""
    spec = make_native("Pendulum-v1", {}).spec
    algorithm = ppo(PPOConfig(num_envs=1, rollout_length=4, bound_mean=bound_mean), spec)
    state = algorithm.init(0)
    params = state.params | {"policy": jax.tree.map(lambda x: 0 * x + 50.0, state.params["policy"])}
    obs = jnp.ones((512, 3))
    action, _ = algorithm.act(state._replace(params=params), obs, jax.random.key(0))
    inside = np.asarray(action) < 2.0
    assert inside.mean() == (pytest.approx(0.5, abs=0.1) if bound_mean else 0.0)


@pytest.mark.parametrize(("least", "expected"), [(-0.5, -0.5), (-20.0, -3.0)])
def test_deviation_of_the_policy_has_a_lower_bound(least: float, expected: float) -> None:
    params = {"policy": jnp.ones(2), "log_std": jnp.array([-3.0, 0.25])}
    bounded_params = with_least_log_std(params, least)
    np.testing.assert_allclose(np.asarray(bounded_params["log_std"]), [expected, 0.25])
    assert bounded_params["policy"] is params["policy"]


@pytest.mark.slow
def test_update_keeps_the_lower_bound() -> None:
    """An entropy bonus below zero narrows the policy, down to the bound and not below."""
    spec = make_native("Pendulum-v1", {}).spec
    config = PPOConfig(
        env_steps=4_000,
        num_envs=4,
        rollout_length=8,
        epochs=4,
        learning_rate=0.1,
        learning_rate_end=0.1,
        entropy_coef=-10.0,
        entropy_coef_end=-10.0,
        least_log_std=-0.25,
    )
    found = []
    for one in (config, replace(config, least_log_std=-20.0)):
        driver = NativeDriver(make_native("Pendulum-v1", {}), ppo(one, spec))
        learners, _ = driver.phase(2)(driver.start([0]), None)
        found.append(float(np.asarray(learners.algorithm.params["log_std"])[0, 0]))
    assert found[0] == -0.25
    assert found[1] < -0.25


@pytest.mark.medium
def test_discrete_policies_have_no_deviation() -> None:
    params = {"policy": jnp.ones(2)}
    assert with_least_log_std(params, -1.0) is params
