"""Networks for the values of discrete actions: one output for each action."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params, affine, fan_in_dense
from backflip.networks.pixel_networks import PixelNetwork
from backflip.networks.torsos import torso


class QNetwork(NamedTuple):
    """Q(s, ·) over discrete actions.

    Attributes:
        init: (NumPy generator) -> parameters.
        preprocess: (obs (B, ...)) -> inputs.
        apply: (params, inputs (B, ...)) -> values of all actions (B, A).
    """

    init: Callable[[np.random.Generator], Params]
    preprocess: Callable[[Array], Array]
    apply: Callable[[Params, Array], Float[Array, "B A"]]


def q_network(
    spec: EnvSpec,
    actions: int,
    hidden: tuple[int, ...],
    *,
    dueling: bool = False,
    pixels: PixelNetwork = "auto",
) -> QNetwork:
    """Return the default Q-network for the observations of `spec`.

    Dueling networks have a head for V and one for A, and
        Q(s, a) = V(s) + A(s, a) - mean_b A(s, b)
    Source: Wang et al. 2016, arXiv:1511.06581, eq. 9.
    """
    body = torso(spec, hidden, pixels)

    def init(rng: np.random.Generator) -> Params:
        params = body.init(rng) | {"advantage": fan_in_dense(rng, body.features, actions)}
        return params | ({"value": fan_in_dense(rng, body.features, 1)} if dueling else {})

    def apply(params: Params, inputs: Array) -> Float[Array, "B A"]:
        x = body.apply(params, inputs)
        advantage = affine(params["advantage"], x)
        if not dueling:
            return advantage
        return affine(params["value"], x) + advantage - advantage.mean(-1, keepdims=True)

    return QNetwork(init, body.preprocess, apply)
