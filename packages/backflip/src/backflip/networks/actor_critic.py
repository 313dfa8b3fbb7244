"""A policy and a value function over the same observations."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import Discrete, EnvSpec
from backflip.networks.layers import Params, affine, dense
from backflip.networks.pixel_networks import PixelNetwork
from backflip.networks.torsos import pixel_torso

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


def actor_critic(
    spec: EnvSpec, hidden: tuple[int, ...], pixels: PixelNetwork = "auto"
) -> ActorCritic:
    """Return the default network for the observations and actions of `spec`."""
    outputs = spec.action.n if isinstance(spec.action, Discrete) else spec.action.shape[0]
    if spec.is_pixels:
        return _pixel_actor_critic(spec, outputs, hidden, pixels)
    return _vector_actor_critic(spec.observation.shape[0], outputs, hidden)


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
            "policy": dense(rng, sizes[-1], outputs, POLICY_HEAD_GAIN),
            "value": dense(rng, sizes[-1], 1, 1.0),
        }

    def see(obs: Array) -> Array:
        return obs

    def apply(params: Params, seen: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = jnp.broadcast_to(seen[None], (2, *seen.shape))
        for layer in params["body"]:
            x = jnp.tanh(jnp.einsum("kbi,kio->kbo", x, layer["w"]) + layer["b"][:, None])
        return affine(params["policy"], x[0]), affine(params["value"], x[1])[:, 0]

    return ActorCritic(init, see, apply)


def _pixel_actor_critic(
    spec: EnvSpec, outputs: int, hidden: tuple[int, ...], pixels: PixelNetwork
) -> ActorCritic:
    """One body for both heads."""
    body = pixel_torso(spec, hidden, pixels)

    def init(rng: np.random.Generator) -> Params:
        return body.init(rng) | {
            "policy": dense(rng, body.features, outputs, POLICY_HEAD_GAIN),
            "value": dense(rng, body.features, 1, 1.0),
        }

    def apply(params: Params, seen: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = body.apply(params, seen)
        return affine(params["policy"], x), affine(params["value"], x)[:, 0]

    return ActorCritic(init, body.see, apply)
