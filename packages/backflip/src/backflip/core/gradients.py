"""Gradient clipping, and the relative size of an update."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float


def clip_by_global_norm(gradient: Any, max_norm: float) -> tuple[Any, Float[Array, ""]]:
    """Return the gradient clipped to norm `max_norm` over all parameters, and its norm before.

    g ← g min(1, max_norm / (‖g‖ + 1e-6)). The 1e-6 is not in the source, but usual, as in PyTorch.

    Source: Pascanu et al. 2013, arXiv:1211.5063, algorithm 1.
    """
    norm = optax.tree.norm(gradient)
    factor = jnp.minimum(1.0, max_norm / (norm + 1e-6))

    def scale(g: Array) -> Array:
        return g * factor

    return jax.tree.map(scale, gradient), norm


def update_ratio(before: Any, after: Any) -> Float[Array, ""]:
    """Return ‖θ' - θ‖ / ‖θ‖ over all parameters."""
    moved = jax.tree.map(jnp.subtract, after, before)
    return optax.tree.norm(moved) / optax.tree.norm(before)
