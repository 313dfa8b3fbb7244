"""Schedules of settings over training."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def linear(start: float, end: float, progress: Float[Array, ""]) -> Float[Array, ""]:
    """Return start + (end - start) min(progress, 1), with progress 0 at the beginning."""
    return start + (end - start) * jnp.minimum(progress, 1.0)
