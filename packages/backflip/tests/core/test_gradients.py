"""Lengths of gradients and of updates, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.gradients import clip_by_global_norm, update_ratio


@pytest.mark.medium
@pytest.mark.parametrize(("max_norm", "expected"), [(0.5, [0.3, 0.4]), (50.0, [3.0, 4.0])])
def test_gradients_are_clipped_by_their_global_norm(max_norm: float, expected: list[float]) -> None:
    """(3, 4) has norm 5, though no parameter's own gradient is that long."""
    gradient, norm = clip_by_global_norm({"a": jnp.array([3.0]), "b": jnp.array([[4.0]])}, max_norm)
    assert float(norm) == 5
    np.testing.assert_allclose([gradient["a"][0], gradient["b"][0, 0]], expected, rtol=1e-5)


@pytest.mark.medium
def test_a_zero_gradient_stays_zero() -> None:
    gradient, norm = clip_by_global_norm({"a": jnp.zeros(3)}, 0.5)
    assert float(norm) == 0
    assert not np.any(gradient["a"])


@pytest.mark.medium
def test_the_update_ratio_by_hand() -> None:
    """From (3, 4), of norm 5, to (3, 5): 1 / 5."""
    before = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    after = {"a": jnp.array([3.0]), "b": jnp.array([5.0])}
    assert float(update_ratio(before, after)) == pytest.approx(0.2)
    assert float(update_ratio(before, before)) == 0
