"""Plain multi-layer perceptrons, one or several of one shape at once."""

from itertools import pairwise

import jax
import jax.numpy as jnp
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


def twins(rng: np.random.Generator, sizes: tuple[int, ...], count: int) -> list[Params]:
    """Return `count` perceptrons of one shape, drawn apart, as layers with a leading axis."""
    return [fan_in_dense(rng, i, o, copies=(count,)) for i, o in pairwise(sizes)]


def apply_twins(layers: list[Params], x: Float[Array, "B inputs"]) -> Float[Array, "K B outputs"]:
    """Return what each of K perceptrons says of the same inputs."""
    first = layers[0]
    out = jnp.einsum("bi,kio->kbo", x, first["w"]) + first["b"][:, None]
    for layer in layers[1:]:
        out = jnp.einsum("kbi,kio->kbo", jax.nn.relu(out), layer["w"]) + layer["b"][:, None]
    return out
