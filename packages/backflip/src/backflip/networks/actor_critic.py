"""A policy and a value function over the same observations."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params, affine, dense
from backflip.networks.pixel_networks import PixelNetwork
from backflip.networks.single_head import action_outputs
from backflip.networks.torsos import pixel_torso, unchanged

POLICY_HEAD_GAIN = 0.01  # the first policy is close to uniform


class ActorCritic(NamedTuple):
    """A policy and a value function over the same observations.

    Attributes:
        init: (NumPy generator) -> parameters.
        preprocess: (obs (B, ...)) -> inputs.
        apply: (params, inputs (B, ...)) -> policy head (B, A), values (B,).
    """

    init: Callable[[np.random.Generator], Params]
    preprocess: Callable[[Array], Array]
    apply: Callable[[Params, Array], tuple[Float[Array, "B A"], Float[Array, " B"]]]


def actor_critic(
    spec: EnvSpec, hidden: tuple[int, ...], pixels: PixelNetwork = "auto"
) -> ActorCritic:
    """Return the default network for the observations and actions of `spec`."""
    outputs = action_outputs(spec)
    if spec.is_pixels:
        return _pixel_actor_critic(spec, outputs, hidden, pixels)
    return _vector_actor_critic(spec.observation.shape[0], outputs, hidden)


def _vector_actor_critic(inputs: int, outputs: int, hidden: tuple[int, ...]) -> ActorCritic:
    """Return two separate tanh networks of one shape, applied as one with a leading axis of 2."""

    def init(rng: np.random.Generator) -> Params:
        sizes = (inputs, *hidden)
        pairs = [
            [dense(rng, i, o, np.sqrt(2)) for _ in ("actor", "critic")] for i, o in pairwise(sizes)
        ]
        body = [jax.tree.map(lambda *leaves: np.stack(leaves), *pair) for pair in pairs]
        return {
            "body": body,
            "policy": dense(rng, sizes[-1], outputs, POLICY_HEAD_GAIN),
            "value": dense(rng, sizes[-1], 1, 1.0),
        }

    def apply(params: Params, inputs: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = jnp.broadcast_to(inputs[None], (2, *inputs.shape))
        for layer in params["body"]:
            x = jnp.tanh(jnp.einsum("kbi,kio->kbo", x, layer["w"]) + layer["b"][:, None])
        return affine(params["policy"], x[0]), affine(params["value"], x[1])[:, 0]

    return ActorCritic(init, unchanged, apply)


def _pixel_actor_critic(
    spec: EnvSpec, outputs: int, hidden: tuple[int, ...], pixels: PixelNetwork
) -> ActorCritic:
    """Return a network in which both heads share a torso."""
    body = pixel_torso(spec, hidden, pixels)

    def init(rng: np.random.Generator) -> Params:
        return body.init(rng) | {
            "policy": dense(rng, body.features, outputs, POLICY_HEAD_GAIN),
            "value": dense(rng, body.features, 1, 1.0),
        }

    def apply(params: Params, inputs: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = body.apply(params, inputs)
        return affine(params["policy"], x), affine(params["value"], x)[:, 0]

    return ActorCritic(init, body.preprocess, apply)
