"""Adam, by its definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.parts.adam import adam_step, first_moments


@pytest.mark.medium
@pytest.mark.parametrize("eps", [1e-8, 1e-2])
def test_three_steps_equal_the_definition(eps: float) -> None:
    rng = np.random.default_rng(0)
    start = {"a": rng.normal(size=3), "b": rng.normal(size=(2, 2))}
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), start)
    moments = first_moments(params)
    wanted = {name: x.copy() for name, x in start.items()}
    mean, square = ({name: np.zeros_like(x) for name, x in start.items()} for _ in range(2))
    for number in (1, 2, 3):
        gradient = {name: rng.normal(size=x.shape) for name, x in start.items()}
        given = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), gradient)
        params, moments, norm = adam_step(params, given, moments, 0.1, eps)
        for name, g in gradient.items():
            mean[name] = 0.9 * mean[name] + 0.1 * g
            square[name] = 0.999 * square[name] + 0.001 * g**2
            m, v = mean[name] / (1 - 0.9**number), square[name] / (1 - 0.999**number)
            wanted[name] -= 0.1 * m / (np.sqrt(v) + eps)
        length = np.sqrt(sum((g**2).sum() for g in gradient.values()))
        np.testing.assert_allclose(norm, length, rtol=1e-5)
    for name, x in wanted.items():
        np.testing.assert_allclose(params[name], x, rtol=1e-4, atol=1e-6)


@pytest.mark.medium
def test_a_share_of_the_learning_rate_shortens_the_step_and_leaves_the_moments() -> None:
    params = {"a": jnp.zeros((2, 3)), "b": jnp.ones(4)}
    gradient = {"a": jnp.arange(6.0).reshape(2, 3) - 2.5, "b": jnp.arange(4.0) - 7}
    shares = {"a": np.array([[0.25], [1.0]], np.float32), "b": jnp.zeros(())}
    moments = first_moments(params)
    whole, after, _ = adam_step(params, gradient, moments, 0.1)
    part, after_part, _ = adam_step(params, gradient, moments, 0.1, shares=shares)
    np.testing.assert_allclose(part["a"][0], whole["a"][0] / 4, rtol=1e-6)
    np.testing.assert_array_equal(part["a"][1], whole["a"][1])
    np.testing.assert_array_equal(part["b"], params["b"])
    jax.tree.map(np.testing.assert_array_equal, after, after_part)
