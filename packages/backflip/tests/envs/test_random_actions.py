"""Random actions are uniform within bounds, and normal without, clipped to a single bound."""

import jax
import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.envs.random_actions import random_actions, random_actions_on_host

COUNT = 4_000
HALF_OPEN = Box(
    np.array([-1, -1, -np.inf], np.float32),
    np.array([3, np.inf, np.inf], np.float32),
    np.dtype(np.float32),
)


@pytest.mark.medium
@pytest.mark.parametrize("where", ["JAX", "NumPy"])
def test_dimensions_without_two_bounds_are_normal_and_clipped(where: str) -> None:
    drawn = np.asarray(
        random_actions(HALF_OPEN, jax.random.key(0), COUNT)
        if where == "JAX"
        else random_actions_on_host(HALF_OPEN, np.random.default_rng(0), COUNT)
    )
    assert drawn.shape == (COUNT, 3)
    assert drawn.dtype == np.float32
    # The mean of max(Z, -1) is φ(1) - Φ(-1) = .083, its variance .751.
    np.testing.assert_allclose(drawn.mean(0), [1, 0.083, 0], atol=0.05)
    np.testing.assert_allclose(drawn.std(0), [4 / np.sqrt(12), 0.867, 1], rtol=0.05)
    assert ((drawn >= HALF_OPEN.low) & (drawn <= HALF_OPEN.high)).all()


@pytest.mark.medium
def test_discrete_actions_are_uniform() -> None:
    for drawn in (
        random_actions(Discrete(3), jax.random.key(0), COUNT),
        random_actions_on_host(Discrete(3), np.random.default_rng(0), COUNT),
    ):
        np.testing.assert_allclose(np.bincount(drawn) / COUNT, 1 / 3, atol=0.03)
