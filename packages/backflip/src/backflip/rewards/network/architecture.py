"""The network of one ensemble member.

Its inputs are the standardised observation, its standardised change, and the action:

    vectors   two layers of 64 units on all three, then one output
    images    of the 21x21 picture and its change: two convolutions of 16 filters (3x3, strides
              3 and 2); then a layer of 64 units on their outputs and the action, then one output

all with leaky ReLU, α = 0.01. Source: Christiano et al. 2017, arXiv:1706.03741, appendix A.1 (the
layers for vectors) and A.2 (16 filters, then 64 units). Departures: smaller images, two
convolutions instead of four, no batch normalisation and no dropout, which would apply different
networks to the two clips of a query.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params, affine, dense
from backflip.networks.single_head import action_outputs
from backflip.networks.torsos import convolve
from backflip.rewards.inputs import (
    SMALL_SIDE,
    frame_channels,
    observation_size,
    one_hot_action,
    scaled_action,
)

UNITS = 64
FILTERS, FILTER_SIDE, STRIDES = 16, 3, (3, 2)
LEAK = 0.01
LARGEST_INPUT = 10.0  # in standard deviations
HEAD_GAIN = 0.1  # small initial logits, so that the loss starts near log 2


class Standardiser(NamedTuple):
    """Scales of the inputs (x - mean) / deviation and (x' - x) / change."""

    mean: Float[Array, " D"]
    deviation: Float[Array, " D"]
    change: Float[Array, " D"]


def initial_network(spec: EnvSpec, rng: np.random.Generator) -> Params:
    """Return initial weights of one member."""
    gain, actions = float(np.sqrt(2)), action_outputs(spec)
    if spec.is_image:
        side, channels = SMALL_SIDE, 2 * frame_channels(spec)
        for stride in STRIDES:
            side = (side - FILTER_SIDE) // stride + 1
        sizes = (side * side * FILTERS + actions, UNITS)
        area = FILTER_SIDE**2
        filters = [dense(rng, area * x, FILTERS, gain) for x in (channels, FILTERS)]
    else:
        sizes, filters = (2 * observation_size(spec) + actions, UNITS, UNITS), []
    body = [dense(rng, i, o, gain) for i, o in pairwise(sizes)]
    return {"filters": filters, "body": body, "head": dense(rng, UNITS, 1, HEAD_GAIN)}


def network_inputs(
    spec: EnvSpec,
    standardiser: Standardiser,
    before: Float[Array, "B D"],
    action: Any,
    after: Float[Array, "B D"],
) -> tuple[Float[Array, "B 2 D"], Float[Array, "B A"]]:
    """Return the inputs of all members: standardised observations and changes, and actions."""
    seen = (before - standardiser.mean[None]) / standardiser.deviation[None]
    change = (after - before) / standardiser.change[None]
    both = jnp.clip(jnp.stack([seen, change], 1), -LARGEST_INPUT, LARGEST_INPUT)
    if isinstance(spec.action, Discrete):
        return both, one_hot_action(spec.action.n, action)
    return both, scaled_action(spec.action, action)


def apply_network(
    spec: EnvSpec, params: Params, seen: Float[Array, "B 2 D"], action: Float[Array, "B A"]
) -> Float[Array, " B"]:
    """Return one member's output for each transition, before any scaling."""
    if spec.is_image:
        x = seen.reshape(-1, 2, SMALL_SIDE, SMALL_SIDE, frame_channels(spec))
        x = jnp.concatenate([x[:, 0], x[:, 1]], -1)
        for layer, stride in zip(params["filters"], STRIDES, strict=True):
            x = _leaky(convolve(layer, x, FILTER_SIDE, stride))
    else:
        x = seen
    x = jnp.concatenate([x.reshape(x.shape[0], -1), action], 1)
    for layer in params["body"]:
        x = _leaky(affine(layer, x))
    return affine(params["head"], x)[:, 0]


def squared_weights(params: Params) -> Float[Array, ""]:
    """Return the sum of all squared weights; biases are left out."""
    layers = [*params["filters"], *params["body"], params["head"]]
    return sum((jnp.square(layer["w"]).sum() for layer in layers), jnp.zeros(()))


def _leaky(x: Array) -> Array:
    return jax.nn.leaky_relu(x, LEAK)
