"""Adam, by its definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.parts.adam import adam_step, first_moments


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


def test_a_step_after_small_gradients_is_bounded() -> None:
    """Without a bound the first large gradient moves 3.16 learning rates, ten of them 6.5 each."""

    def steps(largest: float) -> list[float]:
        params = {"a": jnp.zeros(())}
        moments, moved = first_moments(params), []
        for number in range(5_000 + 10):
            gradient = {"a": jnp.asarray(1e-4 if number < 5_000 else -1.0)}
            after, moments, _ = step(params, gradient, moments, 0.1, 1e-5, largest)
            moved.append(float(after["a"] - params["a"]) / 0.1)
            params = after
        return moved

    step = jax.jit(adam_step, static_argnums=(4, 5))
    free, bounded = steps(0.0), steps(1.0)
    assert free[5_000] == pytest.approx(0.1 / np.sqrt(0.001), rel=0.02)
    assert max(free) == pytest.approx(6.5, rel=0.02)
    np.testing.assert_allclose(bounded, np.clip(free, -1.0, 1.0), rtol=1e-3)
