"""One step of Adam.

Source: Kingma & Ba 2015, arXiv:1412.6980, algorithm 1.

After a long time of small gradients v is small, and a gradient of usual size makes steps of up to
(1 - .9) / sqrt(1 - .999) = 3.2 learning rates at first and 6.5 after ten steps. Dohare et al. 2023
("Overcoming policy collapse in deep reinforcement learning") found that policies collapse this way
and set both decay rates equal, which bounds a step by one learning rate. `largest` is that bound
without other decay rates. Adafactor has a similar one (Shazeer & Stern 2018, arXiv:1804.04235,
section 6).
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
    largest: float = 0.0,
) -> tuple[Tree, optax.ScaleByAdamState, Float[Array, ""]]:
    """Return parameters and moments after one step, and the gradient's norm.

        m ← .9 m + .1 g,   v ← .999 v + .001 g²,   θ ← θ - learning_rate · m̂ / (√v̂ + eps)

    m̂ and v̂ are bias-corrected. If `largest` is above 0, no parameter moves by more than `largest`
    learning rates.
    """
    adam: Any = optax.scale_by_adam(eps=eps)
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to the power of an int32
        direction, moments = adam.update(gradient, moments)
    if largest:
        direction = optax.tree.clip(direction, -largest, largest)

    def descend(param: Array, direction: Array) -> Array:
        return param - learning_rate * direction

    return jax.tree.map(descend, params, direction), moments, optax.tree.norm(gradient)
