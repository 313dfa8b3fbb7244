"""The mean of a continuous policy can be kept within the action space."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.parts.stochastic_policy import bounded
from backflip.algorithms.ppo import ppo
from backflip.core.spaces import Box
from backflip.envs.registry import make_native

SPACE = Box(np.array([-1.0, 2.0], np.float32), np.array([3.0, 2.5], np.float32), np.dtype("f4"))


def test_three_means_by_hand() -> None:
    head = jnp.array([[0.0, 0.0], [1e6, -1e6], [2.0, 0.25]])
    tanh = np.tanh(1.0)
    expected = [[1.0, 2.25], [3.0, 2.0], [1.0 + 2 * tanh, 2.25 + 0.25 * tanh]]
    np.testing.assert_allclose(np.asarray(bounded(SPACE, head)), expected, rtol=1e-6)


def test_slope_at_zero_is_one() -> None:
    slope = jax.jacobian(lambda x: bounded(SPACE, x[None])[0])(jnp.zeros(2))
    np.testing.assert_allclose(np.asarray(slope), np.eye(2), atol=1e-6)


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
