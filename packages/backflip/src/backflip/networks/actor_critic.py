"""A policy and a value function over the same observations."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import EnvSpec
from backflip.networks.layers import Params, affine, dense
from backflip.networks.pixel_networks import PixelNetwork, is_own
from backflip.networks.single_head import action_outputs
from backflip.networks.torsos import Torso, torso, unchanged

POLICY_HEAD_GAIN = 0.01  # the first policy is close to uniform


class ActorCritic(NamedTuple):
    """A policy and a value function over the same observations.

    Attributes:
        init: (NumPy generator) -> parameters.
        preprocess: (obs (B, ...)) -> inputs.
        apply: (params, inputs (B, ...)) -> policy head (B, A), values (B,).
        acts: (params) -> 1 for parameters that the policy head depends on, else 0, in arrays that
            broadcast to those of `params`.
    """

    init: Callable[[np.random.Generator], Params]
    preprocess: Callable[[Array], Array]
    apply: Callable[[Params, Array], tuple[Float[Array, "B A"], Float[Array, " B"]]]
    acts: Callable[[Params], Params]


def actor_critic(
    spec: EnvSpec, hidden: tuple[int, ...], pixels: PixelNetwork = "auto"
) -> ActorCritic:
    """Return the network for the observations and actions of `spec`.

    Policy and value function share the torso of images, and have one each for vectors.
    """
    outputs = action_outputs(spec)
    if spec.is_image:
        return _one_torso(torso(spec, hidden, pixels), outputs)
    if is_own(pixels):
        return _two_torsos(torso(spec, hidden, pixels), outputs)
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

    def acts(params: Params) -> Params:
        actor_first = np.array([1.0, 0.0], np.float32)
        layer = {"w": actor_first[:, None, None], "b": actor_first[:, None]}
        return acts_without("value")(params) | {"body": [layer for _ in params["body"]]}

    return ActorCritic(init, unchanged, apply, acts)


def _one_torso(body: Torso, outputs: int) -> ActorCritic:
    """Return a network in which both heads share a torso."""

    def init(rng: np.random.Generator) -> Params:
        return body.init(rng) | _heads(rng, body, outputs)

    def apply(params: Params, inputs: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        x = body.apply(params, inputs)
        return affine(params["policy"], x), affine(params["value"], x)[:, 0]

    return ActorCritic(init, body.preprocess, apply, acts_without("value"))


def _two_torsos(body: Torso, outputs: int) -> ActorCritic:
    """Return a network in which each head has a torso of its own."""

    def init(rng: np.random.Generator) -> Params:
        bodies = {name: body.init(rng) for name in ("actor", "critic")}
        return bodies | _heads(rng, body, outputs)

    def apply(params: Params, inputs: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        actor, critic = (body.apply(params[name], inputs) for name in ("actor", "critic"))
        return affine(params["policy"], actor), affine(params["value"], critic)[:, 0]

    return ActorCritic(init, body.preprocess, apply, acts_without("critic", "value"))


def acts_without(*of_value: str) -> Callable[[Params], Params]:
    """Return the `acts` of a network whose parts act, but for the named parts."""

    def acts(params: Params) -> Params:
        return {name: _filled(params[name], float(name not in of_value)) for name in params}

    return acts


def _filled(params: Any, number: float) -> Any:
    """Return the structure of some parameters, with one number in place of each array."""

    def fill(_: Array) -> np.float32:
        return np.float32(number)

    return jax.tree.map(fill, params)


def _heads(rng: np.random.Generator, body: Torso, outputs: int) -> Params:
    return {
        "policy": dense(rng, body.features, outputs, POLICY_HEAD_GAIN),
        "value": dense(rng, body.features, 1, 1.0),
    }
