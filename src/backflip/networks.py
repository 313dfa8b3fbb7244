"""Small networks as plain dictionaries of arrays.

Parameters are drawn on the host with NumPy: drawing them inside a compiled program costs seconds
of compile time for nothing. `apply` functions take a batch (B, ...) of observations.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from backflip.core.spec import Discrete, EnvSpec

Params = dict[str, Any]

LARGEST_SIDE = 64  # larger images are halved until they fit: 42x42 is enough for Pong
PATCH = 6  # side of a patch, in pixels of the halved image
PATCH_CHANNELS = 16
PIXEL_HIDDEN = 128
POLICY_HEAD_GAIN = 0.01  # a first policy close to uniform


class ActorCritic(NamedTuple):
    """A policy and a value function over the same observations.

    Attributes:
        init: parameters from a NumPy generator.
        see: (obs of shape (B, ...)) -> what `apply` takes; without parameters, so that an
            algorithm that uses an observation several times computes it once.
        apply: (params, seen of shape (B, ...)) -> policy head (B, A), values (B,).
    """

    init: Callable[[np.random.Generator], Params]
    see: Callable[[Array], Array]
    apply: Callable[[Params, Array], tuple[Float[Array, "B A"], Float[Array, " B"]]]


def actor_critic(spec: EnvSpec, hidden: tuple[int, ...]) -> ActorCritic:
    """Return the default network for the observations and actions of `spec`."""
    outputs = spec.action.n if isinstance(spec.action, Discrete) else spec.action.shape[0]
    if spec.is_pixels:
        return _pixel_actor_critic(spec.observation.shape, outputs)
    return _vector_actor_critic(spec.observation.shape[0], outputs, hidden)


def orthogonal(rng: np.random.Generator, rows: int, columns: int, gain: float) -> np.ndarray:
    """Return a (rows, columns) matrix with orthonormal rows or columns, times `gain`.

    Source: Saxe et al. 2014, arXiv:1312.6120.
    """
    tall = rng.normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))  # makes the distribution uniform over such matrices
    return np.asarray(gain * (q if rows >= columns else q.T), np.float32)


def dense(rng: np.random.Generator, inputs: int, outputs: int, gain: float) -> Params:
    """Return the parameters of one affine layer: orthogonal weights, zero bias."""
    return {"w": orthogonal(rng, inputs, outputs, gain), "b": np.zeros(outputs, np.float32)}


def affine(layer: Params, x: Float[Array, "B inputs"]) -> Float[Array, "B outputs"]:
    """Return x W + b."""
    return x @ layer["w"] + layer["b"][None]


def _vector_actor_critic(inputs: int, outputs: int, hidden: tuple[int, ...]) -> ActorCritic:
    """Two separate tanh networks of one shape, applied as one with a leading axis of 2."""

    def init(rng: np.random.Generator) -> Params:
        sizes = (inputs, *hidden)
        pairs = [
            [dense(rng, i, o, np.sqrt(2)) for _ in ("actor", "critic")] for i, o in pairwise(sizes)
        ]
        body = [jax.tree.map(lambda *leaves: np.stack(leaves), *pair) for pair in pairs]
        return {
            "body": body,
            "policy": dense(rng, hidden[-1], outputs, POLICY_HEAD_GAIN),
            "value": dense(rng, hidden[-1], 1, 1.0),
        }

    def see(obs: Array) -> Array:
        return obs

    def apply(params: Params, seen: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = jnp.broadcast_to(seen[None], (2, *seen.shape))
        for layer in params["body"]:
            x = jnp.tanh(jnp.einsum("kbi,kio->kbo", x, layer["w"]) + layer["b"][:, None])
        return affine(params["policy"], x[0]), affine(params["value"], x[1])[:, 0]

    return ActorCritic(init, see, apply)


def _pixel_actor_critic(shape: tuple[int, ...], outputs: int) -> ActorCritic:
    """One body for both heads: patches of pixels, each through one layer, then a dense layer.

    A first convolution whose stride is its width is one matrix product, which is several times
    faster on a CPU than an overlapping one and loses nothing that the dense layer cannot mend.
    """
    factor = halving(shape)
    count = int(np.prod([-(-side // (factor * PATCH)) for side in shape[:2]]))

    def init(rng: np.random.Generator) -> Params:
        return {
            "patches": dense(rng, PATCH * PATCH * shape[2], PATCH_CHANNELS, np.sqrt(2)),
            "hidden": dense(rng, count * PATCH_CHANNELS, PIXEL_HIDDEN, np.sqrt(2)),
            "policy": dense(rng, PIXEL_HIDDEN, outputs, POLICY_HEAD_GAIN),
            "value": dense(rng, PIXEL_HIDDEN, 1, 1.0),
        }

    def see(obs: Array) -> Array:
        return averaged_patches(obs, factor, PATCH)

    def apply(params: Params, seen: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = jax.nn.relu(affine(params["patches"], seen.reshape(-1, seen.shape[-1])))
        x = jax.nn.relu(affine(params["hidden"], x.reshape(seen.shape[0], -1)))
        return affine(params["policy"], x), affine(params["value"], x)[:, 0]

    return ActorCritic(init, see, apply)


def halving(shape: tuple[int, ...]) -> int:
    """Return the power of two by which an image's sides are divided to fit `LARGEST_SIDE`."""
    factor = 1
    while max(shape[:2]) / factor > LARGEST_SIDE:
        factor *= 2
    return factor


def averaged_patches(
    images: UInt8[Array, "B height width channels"], factor: int, side: int
) -> Float[Array, "B count pixels"]:
    """Return the images averaged over factor x factor pixels, as side x side patches, in [0, 1].

    Black is added at the far edges where the sides do not divide.
    """
    batch, height, width, channels = images.shape
    whole = factor * side
    images = jnp.pad(images, ((0, 0), (0, -height % whole), (0, -width % whole), (0, 0)))
    rows, columns = images.shape[1] // whole, images.shape[2] // whole
    cells = images.reshape(batch, rows, side, factor, columns, side, factor, channels)
    total = sum(
        cells[:, :, :, i, :, :, j].astype(jnp.float32) for i in range(factor) for j in range(factor)
    )
    averaged = jnp.asarray(total) / (255.0 * factor**2)
    patches = averaged.transpose(0, 1, 3, 2, 4, 5)
    return patches.reshape(batch, rows * columns, side * side * channels)
