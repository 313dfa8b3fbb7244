"""Torsos: the part of a network before its heads, from observations to features."""

import functools
import math
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped, UInt8

from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params, affine, dense, fan_in_dense
from backflip.networks.own import own_network
from backflip.networks.pixel_networks import GRID_SIDE, PixelNetwork, is_own
from runshelf.errors import UsageError

LARGEST_SIDE = 64  # larger images are halved until they fit: 42 x 42 is enough for Pong
PATCH = 6  # side of a patch, in pixels of the halved image
PATCH_CHANNELS = 16
PIXEL_HIDDEN = 128
GRID_CHANNELS = 16
SMALLEST_SIDE = {"grid": 3, "nature": 36}  # their convolutions need at least this


class Torso(NamedTuple):
    """A network without a head.

    Attributes:
        init: (NumPy generator) -> parameters.
        preprocess: (obs (B, ...)) -> inputs.
        apply: (params, inputs (B, ...)) -> features (B, F).
        features: F.
    """

    init: Callable[[np.random.Generator], Params]
    preprocess: Callable[[Array], Array]
    apply: Callable[[Params, Array], Float[Array, "B F"]]
    features: int


def vector_torso(inputs: int, hidden: tuple[int, ...]) -> Torso:
    """Return layers of the given widths with ReLU after each."""

    def init(rng: np.random.Generator) -> Params:
        return {"body": [fan_in_dense(rng, i, o) for i, o in pairwise((inputs, *hidden))]}

    def apply(params: Params, x: Array) -> Float[Array, "B F"]:
        for layer in params["body"]:
            x = jax.nn.relu(affine(layer, x))
        return x

    return Torso(init, unchanged, apply, (inputs, *hidden)[-1])


def torso(
    spec: EnvSpec,
    hidden: tuple[int, ...],
    kind: PixelNetwork = "auto",
    of_vectors: Callable[[int, tuple[int, ...]], Torso] = vector_torso,
) -> Torso:
    """Return the torso for the observations of `spec`.

    Args:
        spec: the environment's spec.
        hidden: widths of the hidden layers, for vectors and `flat`.
        kind: the network for images, or a user's `module:function` for all observations.
        of_vectors: (length of a vector, `hidden`) -> the torso for vectors.

    Raises:
        UsageError: images are too small for `kind`, or a user's network is invalid.
    """
    if is_own(kind):
        own = own_network(kind, spec, hidden)
        return Torso(own.init, unchanged, own.apply, own.features)
    if spec.is_image:
        return pixel_torso(spec, hidden, kind)
    return of_vectors(spec.observation.shape[0], hidden)


def pixel_torso(spec: EnvSpec, hidden: tuple[int, ...], kind: PixelNetwork) -> Torso:
    """Return the torso for images; `auto` chooses by the size of the image.

    Raises:
        UsageError: images are too small for `kind`.
    """
    shape = spec.observation.shape
    if kind == "auto":
        grid = SMALLEST_SIDE["grid"] <= min(shape[:2]) and max(shape[:2]) <= GRID_SIDE
        kind = "grid" if grid else "patches"
    if min(shape[:2]) < SMALLEST_SIDE.get(kind, 1):
        raise UsageError(
            f"`network={kind}` needs images of at least {SMALLEST_SIDE[kind]} x "
            f"{SMALLEST_SIDE[kind]} pixels, and those of `{spec.id}` are {shape[0]} x {shape[1]}; "
            "try network=auto"
        )
    if kind == "nature":
        return nature_torso(shape)
    if kind == "grid":
        return grid_torso(spec)
    if kind == "flat":
        return flat_torso(spec, hidden)
    return patches_torso(shape, contrast=kind == "contrast")


def patches_torso(shape: tuple[int, ...], *, contrast: bool) -> Torso:
    """Return a layer on non-overlapping patches of pixels, then a dense layer.

    A convolution whose stride is its width is one matrix product, several times faster on a CPU
    than an overlapping convolution. The dense layer makes up for the missing overlap.

    Args:
        shape: of an observation.
        contrast: standardise each observation first.
    """
    factor = halving(shape)
    count = int(np.prod([-(-side // (factor * PATCH)) for side in shape[:2]]))

    def init(rng: np.random.Generator) -> Params:
        return {
            "patches": dense(rng, PATCH * PATCH * shape[2], PATCH_CHANNELS, np.sqrt(2)),
            "hidden": dense(rng, count * PATCH_CHANNELS, PIXEL_HIDDEN, np.sqrt(2)),
        }

    def preprocess(obs: Array) -> Array:
        images = averaged(obs, factor)
        if contrast:
            white = jnp.full((1, *shape), 255, jnp.uint8)
            images = standardized(images, averaged(white, factor))
        return patches_of(images, PATCH)

    def apply(params: Params, inputs: Array) -> Float[Array, "B F"]:
        x = jax.nn.relu(affine(params["patches"], inputs.reshape(-1, inputs.shape[-1])))
        return jax.nn.relu(affine(params["hidden"], x.reshape(inputs.shape[0], -1)))

    return Torso(init, preprocess, apply, PIXEL_HIDDEN)


def grid_torso(spec: EnvSpec) -> Torso:
    """Return one 3x3 convolution and a dense layer, for grids of cells.

    The convolution is one matrix product over the nine shifted grids.
    Source: Young & Tian 2019, arXiv:1903.03176, section 4.
    """
    height, width, channels = spec.observation.shape
    cells = (height - 2) * (width - 2)
    largest = _largest(spec)

    def init(rng: np.random.Generator) -> Params:
        return {
            "cells": dense(rng, 9 * channels, GRID_CHANNELS, np.sqrt(2)),
            "hidden": dense(rng, cells * GRID_CHANNELS, PIXEL_HIDDEN, np.sqrt(2)),
        }

    def preprocess(obs: Array) -> Array:
        shifted = [
            obs[:, i : height - 2 + i, j : width - 2 + j] for i in range(3) for j in range(3)
        ]
        return jnp.concatenate(shifted, -1).astype(jnp.float32) / largest

    def apply(params: Params, inputs: Array) -> Float[Array, "B F"]:
        x = jax.nn.relu(affine(params["cells"], inputs.reshape(-1, inputs.shape[-1])))
        return jax.nn.relu(affine(params["hidden"], x.reshape(inputs.shape[0], -1)))

    return Torso(init, preprocess, apply, PIXEL_HIDDEN)


def flat_torso(spec: EnvSpec, hidden: tuple[int, ...]) -> Torso:
    """Return layers of the given widths with ReLU after each, on the flattened image."""
    sizes = (math.prod(spec.observation.shape), *hidden)
    largest = _largest(spec)

    def init(rng: np.random.Generator) -> Params:
        return {"body": [dense(rng, i, o, np.sqrt(2)) for i, o in pairwise(sizes)]}

    def preprocess(obs: Array) -> Array:
        return obs.reshape(obs.shape[0], -1).astype(jnp.float32) / largest

    return Torso(init, preprocess, vector_torso(sizes[0], hidden).apply, sizes[-1])


def nature_torso(shape: tuple[int, ...]) -> Torso:
    """Return three convolutions and a dense layer of 512.

    Convolutions 32 of 8x8 stride 4, 64 of 4x4 stride 2, 64 of 3x3 stride 1. The first is computed
    as a 2x2 convolution of 4x4 blocks: its weight gradient would take most of the time on a CPU.
    Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning".
    """
    sides = [_after_convolutions(side) for side in shape[:2]]
    flat = sides[0] * sides[1] * 64

    def init(rng: np.random.Generator) -> Params:
        gain = float(np.sqrt(2))
        return {
            "first": dense(rng, 64 * shape[2], 32, gain),
            "second": dense(rng, 16 * 32, 64, gain),
            "third": dense(rng, 9 * 64, 64, gain),
            "hidden": dense(rng, flat, 512, gain),
        }

    def preprocess(obs: Array) -> Array:
        return blocks(obs[:, : shape[0] // 4 * 4, : shape[1] // 4 * 4], 4)

    def apply(params: Params, inputs: Array) -> Float[Array, "B F"]:
        x = inputs.astype(jnp.float32) / 255.0
        x = jax.nn.relu(convolve(params["first"], x, 2, 1))
        x = jax.nn.relu(convolve(params["second"], x, 4, 2))
        x = jax.nn.relu(convolve(params["third"], x, 3, 1))
        return jax.nn.relu(affine(params["hidden"], x.reshape(x.shape[0], -1)))

    return Torso(init, preprocess, apply, 512)


def _largest(spec: EnvSpec) -> float:
    """Return the largest value of a cell, at least 1."""
    return max(float(spec.observation.high.max()), 1.0)


def halving(shape: tuple[int, ...]) -> int:
    """Return the power of two that divides an image's sides so that they fit `LARGEST_SIDE`."""
    factor = 1
    while max(shape[:2]) / factor > LARGEST_SIDE:
        factor *= 2
    return factor


def averaged(
    images: UInt8[Array, "B height width channels"], factor: int
) -> Float[Array, "B rows columns channels"]:
    """Return the images averaged over factor x factor pixels, in [0, 1].

    Zeros are added at the far edges if the sides do not divide. Rows are summed as integers, which
    takes half the time on a CPU.
    """
    batch, height, width, channels = images.shape
    images = jnp.pad(images, ((0, 0), (0, -height % factor), (0, -width % factor), (0, 0)))
    height, width = images.shape[1] // factor, images.shape[2] // factor
    wide = jnp.uint16 if factor <= 16 else jnp.uint32
    rows = images.astype(wide).reshape(batch, height, factor, width * factor * channels)
    lines = functools.reduce(operator.add, (rows[:, :, i] for i in range(factor)))
    cells = lines.reshape(batch, height, width, factor, channels)
    total = functools.reduce(operator.add, (cells[:, :, :, j] for j in range(factor)))
    return total.astype(jnp.float32) / (255.0 * factor**2)


def standardized(
    images: Float[Array, "B rows columns channels"],
    inside: Float[Array, "1 rows columns channels"],
) -> Float[Array, "B rows columns channels"]:
    """Return (x - m) / (s + 0.001), with mean m and standard deviation s of each observation.

    Pong's ball is two pixels on a background of a third of white. Without standardisation the
    features depend almost only on the background.

    Args:
        images: x, in [0, 1].
        inside: share of each pixel that is image, not padding at an edge; padding stays 0.
    """
    pixels = (-3, -2, -1)
    area = inside.sum()
    mean = images.sum(pixels, keepdims=True) / area
    centred = images - mean * inside
    deviation = jnp.sqrt(jnp.square(centred).sum(pixels, keepdims=True) / area)
    return centred / (deviation + 1e-3)


def patches_of(
    images: Float[Array, "B rows columns channels"], side: int
) -> Float[Array, "B count pixels"]:
    """Return side x side patches of images, row by row; pads with 0 if the sides do not divide."""
    batch, rows, columns, channels = images.shape
    images = jnp.pad(images, ((0, 0), (0, -rows % side), (0, -columns % side), (0, 0)))
    rows, columns = images.shape[1] // side, images.shape[2] // side
    cut = _cut(images, side)
    return cut.reshape(batch, rows * columns, side * side * channels)


def blocks(
    images: UInt8[Array, "B height width channels"], side: int
) -> UInt8[Array, "B rows columns pixels"]:
    """Return images as grids of blocks whose pixels are channels; `side` divides their sides."""
    batch, height, width, channels = images.shape
    cut = _cut(images, side)
    return cut.reshape(batch, height // side, width // side, side * side * channels)


def _cut(
    images: Shaped[Array, "B height width channels"], side: int
) -> Shaped[Array, "B rows columns side pixels"]:
    """Return images cut into side x side squares; `side` divides their sides.

    Columns of squares are copied one by one: XLA's transposition takes ten times as long on a CPU.
    """
    batch, height, width, channels = images.shape
    columns = width // side
    lines = images.reshape(batch, height // side, side, columns, side * channels)
    # Not `jnp.stack`, which exported policies in NumPy do not have.
    return jnp.concatenate([lines[:, :, None, :, column] for column in range(columns)], 2)


def unchanged(obs: Array) -> Array:
    """Return the observations: the `preprocess` of networks for vectors."""
    return obs


def _after_convolutions(side: int) -> int:
    side = side // 4 - 1
    return ((side - 4) // 2 + 1) - 2


def convolve(
    layer: Params, x: Float[Array, "B height width channels"], side: int, stride: int
) -> Float[Array, "B rows columns outputs"]:
    """Return the convolution without padding; weights are (side side channels, outputs).

    One matrix product over the shifted images. Inside a loop, XLA's own convolution runs on one
    CPU core with a slow method: an update with `nature` took thirty times as long.
    """
    rows, columns = ((length - side) // stride + 1 for length in x.shape[1:3])
    shifted = [
        x[:, i : i + stride * rows : stride, j : j + stride * columns : stride]
        for i in range(side)
        for j in range(side)
    ]
    inputs = jnp.concatenate(shifted, -1)
    return affine(layer, inputs.reshape(-1, inputs.shape[-1])).reshape(*inputs.shape[:3], -1)
