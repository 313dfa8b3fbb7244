"""One-step targets of values, and the update of target networks."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Params = TypeVar("Params")


def bellman_target(
    reward: Float[Array, "*batch"],
    discount: Float[Array, "*batch"],
    terminated: Bool[Array, "*batch"],
    next_value: Float[Array, "*batch"],
) -> Float[Array, "*batch"]:
    """Return r + γ (1 - terminated) V(s'); gradients are stopped.

    A truncated step bootstraps like any other.

    Source: Sutton & Barto 2018, eq. 6.2. With rewards of n steps summed, γ is γ^n.
    """
    following = jnp.where(terminated, 0.0, next_value)
    return jax.lax.stop_gradient(reward + discount * following)


def value_of_choice(
    values: Float[Array, "B A"], chooser: Float[Array, "B A"]
) -> Float[Array, " B"]:
    """Return Q_values(s, argmax_b Q_chooser(s, b)).

    Source: van Hasselt et al. 2016, arXiv:1509.06461, eq. 4; eq. 3 if both are the same.
    """
    choice = jax.nn.one_hot(jnp.argmax(chooser, -1), chooser.shape[-1])
    return (values * choice).sum(-1)


def polyak(target: Params, online: Params, rate: float) -> Params:
    """Return θ⁻ + τ (θ - θ⁻) of every array.

    Source: Lillicrap et al. 2016, arXiv:1509.02971, algorithm 1.

    Args:
        target: θ⁻.
        online: θ.
        rate: τ in (0, 1]; 1 copies.
    """

    def follow(target: Array, online: Array) -> Array:
        return target + rate * (online - target)

    return jax.tree.map(follow, target, online)
