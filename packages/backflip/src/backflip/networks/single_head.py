"""One network with one output vector, for algorithms with separate policy and value networks."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params, affine, dense
from backflip.networks.pixel_networks import PixelNetwork
from backflip.networks.torsos import Torso, torso, unchanged


class SingleHead(NamedTuple):
    """A network with one output vector.

    Attributes:
        init: (NumPy generator) -> parameters.
        preprocess: (obs (B, ...)) -> inputs.
        apply: (params, inputs (B, ...)) -> outputs (B, outputs).
    """

    init: Callable[[np.random.Generator], Params]
    preprocess: Callable[[Array], Array]
    apply: Callable[[Params, Array], Float[Array, "B outputs"]]


def action_outputs(spec: EnvSpec) -> int:
    """Return the number of policy outputs: one per discrete action or action dimension."""
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
        spec: the environment's spaces.
        outputs: number of outputs.
        hidden: widths of the hidden layers, for vectors and `flat`.
        head_gain: gain of the orthogonal weights of the last layer.
        pixels: the network for images, or a user's.
    """
    body = torso(spec, hidden, pixels, tanh_torso)

    def init(rng: np.random.Generator) -> Params:
        return body.init(rng) | {"head": dense(rng, body.features, outputs, head_gain)}

    def apply(params: Params, inputs: Array) -> Float[Array, "B outputs"]:
        return affine(params["head"], body.apply(params, inputs))

    return SingleHead(init, body.preprocess, apply)


def tanh_torso(inputs: int, hidden: tuple[int, ...]) -> Torso:
    """Return layers of the given widths with tanh after each; the identity without layers."""
    sizes = (inputs, *hidden)

    def init(rng: np.random.Generator) -> Params:
        return {"body": [dense(rng, i, o, float(np.sqrt(2))) for i, o in pairwise(sizes)]}

    def apply(params: Params, x: Array) -> Float[Array, "B F"]:
        for layer in params["body"]:
            x = jnp.tanh(affine(layer, x))
        return x

    return Torso(init, unchanged, apply, sizes[-1])
