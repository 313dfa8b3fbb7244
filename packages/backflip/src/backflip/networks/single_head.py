"""One network with one output vector, for algorithms that keep policy and value function apart."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import Discrete, EnvSpec
from backflip.networks.layers import Params, affine, dense
from backflip.networks.pixel_networks import PixelNetwork
from backflip.networks.torsos import Torso, pixel_torso


class SingleHead(NamedTuple):
    """A function of observations.

    Attributes:
        init: parameters from a NumPy generator.
        see: (obs of shape (B, ...)) -> what `apply` takes; without parameters.
        apply: (params, seen of shape (B, ...)) -> outputs (B, outputs).
    """

    init: Callable[[np.random.Generator], Params]
    see: Callable[[Array], Array]
    apply: Callable[[Params, Array], Float[Array, "B outputs"]]


def action_outputs(spec: EnvSpec) -> int:
    """Return how many numbers a policy puts out: one per choice, or per dimension."""
    return spec.action.n if isinstance(spec.action, Discrete) else spec.action.shape[0]


def single_head(
    spec: EnvSpec,
    outputs: int,
    hidden: tuple[int, ...],
    head_gain: float,
    pixels: PixelNetwork = "auto",
) -> SingleHead:
    """Return the network for the observations of `spec`.

    Args:
        spec: what there is to see.
        outputs: numbers it puts out.
        hidden: widths of its layers, for vectors and `flat`.
        head_gain: gain of the orthogonal weights of the last layer.
        pixels: the network that sees images.
    """
    if spec.is_pixels:
        body = pixel_torso(spec, hidden, pixels)
    else:
        body = tanh_torso(spec.observation.shape[0], hidden)

    def init(rng: np.random.Generator) -> Params:
        return body.init(rng) | {"head": dense(rng, body.features, outputs, head_gain)}

    def apply(params: Params, seen: Array) -> Float[Array, "B outputs"]:
        return affine(params["head"], body.apply(params, seen))

    return SingleHead(init, body.see, apply)


def tanh_torso(inputs: int, hidden: tuple[int, ...]) -> Torso:
    """Return layers of the given widths, tanh after each; nothing at all without any."""
    sizes = (inputs, *hidden)

    def init(rng: np.random.Generator) -> Params:
        return {"body": [dense(rng, i, o, float(np.sqrt(2))) for i, o in pairwise(sizes)]}

    def see(obs: Array) -> Array:
        return obs

    def apply(params: Params, seen: Array) -> Float[Array, "B F"]:
        x = seen
        for layer in params["body"]:
            x = jnp.tanh(affine(layer, x))
        return x

    return Torso(init, see, apply, sizes[-1])
