"""Schedules by hand."""

import jax.numpy as jnp
import pytest

from backflip.core.schedules import linear


@pytest.mark.parametrize(
    ("progress", "expected"), [(0.0, 2.0), (0.25, 3.0), (1.0, 6.0), (9.0, 6.0)]
)
def test_a_linear_schedule_stays_at_its_end(progress: float, expected: float) -> None:
    assert float(linear(2.0, 6.0, jnp.asarray(progress))) == pytest.approx(expected)
