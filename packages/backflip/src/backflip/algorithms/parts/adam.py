"""One step of Adam.

Source: Kingma & Ba 2015, arXiv:1412.6980, algorithm 1.
"""

from typing import Any, TypeVar

import jax
import numpy as np
import optax
from jaxtyping import Array, Float

Tree = TypeVar("Tree")


def first_moments(params: Any) -> optax.ScaleByAdamState:
    """Return Adam's moments before the first step, as NumPy arrays."""
    mean, square = (jax.tree.map(np.zeros_like, params) for _ in range(2))
    return optax.ScaleByAdamState(np.zeros((), np.int32), mean, square)


def adam_step(
    params: Tree,
    gradient: Tree,
    moments: optax.ScaleByAdamState,
    learning_rate: Float[Array, ""] | float,
    eps: float = 1e-8,
    shares: Any = None,
) -> tuple[Tree, optax.ScaleByAdamState, Float[Array, ""]]:
    """Return parameters and moments after one step, and the gradient's norm.

        m ← .9 m + .1 g,   v ← .999 v + .001 g²,   θ ← θ - learning_rate · share · m̂ / (√v̂ + eps)

    m̂ and v̂ are bias-corrected.

    Args:
        params: the parameters θ.
        gradient: their gradient g.
        moments: m and v, and the number of steps so far.
        learning_rate: the step size.
        eps: added to the divisor.
        shares: what share of the learning rate each parameter gets, in arrays that broadcast to
            those of `params`; by default 1.
    """
    adam: Any = optax.scale_by_adam(eps=eps)
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to the power of an int32
        direction, moments = adam.update(gradient, moments)
    if shares is not None:
        direction = jax.tree.map(jax.numpy.multiply, direction, shares)

    def descend(param: Array, direction: Array) -> Array:
        return param - learning_rate * direction

    return jax.tree.map(descend, params, direction), moments, optax.tree.norm(gradient)
