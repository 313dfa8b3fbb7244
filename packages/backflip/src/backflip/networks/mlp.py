"""Plain multi-layer perceptrons."""

from itertools import pairwise

import jax
import numpy as np
from jaxtyping import Array, Float

from backflip.networks.layers import Params, affine, fan_in_dense


def mlp(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[Params]:
    """Return the layers of a perceptron with the given widths, inputs and outputs included."""
    return [fan_in_dense(rng, i, o) for i, o in pairwise(sizes)]


def apply_mlp(layers: list[Params], x: Float[Array, "B inputs"]) -> Float[Array, "B outputs"]:
    """Return the last layer's output, with ReLU between the layers."""
    for layer in layers[:-1]:
        x = jax.nn.relu(affine(layer, x))
    return affine(layers[-1], x)
