"""A deterministic policy of continuous actions with exploration noise: how DDPG and TD3 act."""

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from backflip.algorithms.parts.action_scale import ActionScale, to_env
from backflip.algorithms.parts.critics import Critics, action_values
from backflip.core.spec import EnvSpec
from backflip.core.statistics import masked_mean
from backflip.networks.layers import Params
from backflip.networks.mlp import apply_mlp, mlp


@runtime_checkable
class ActorState(Protocol):
    """The fields of an algorithm's state that acting reads."""

    @property
    def actor(self) -> list[Params]:
        """Parameters of μ."""
        ...


def first_actor(
    rng: np.random.Generator, spec: EnvSpec, scale: ActionScale, hidden: tuple[int, ...]
) -> list[Params]:
    """Return parameters of μ before the first update."""
    return mlp(rng, (spec.observation.shape[0], *hidden, scale.dimensions))


def unit_action(actor: list[Params], obs: Float[Array, "B inputs"]) -> Float[Array, "B A"]:
    """Return μ(s) = tanh of a network, in [-1, 1]."""
    return jnp.tanh(apply_mlp(actor, obs))


def act(
    scale: ActionScale, noise: float, state: ActorState, obs: Any, key: PRNGKeyArray
) -> tuple[Any, tuple[()]]:
    """Return c + h clip(μ(s) + ε, -1, 1), ε ~ N(0, σ²), for each of N observations.

    c and h are those of `scale`, σ is `noise`.
    """
    unit = unit_action(state.actor, obs)
    unit = unit + noise * jax.random.normal(key, unit.shape)
    return to_env(scale, jnp.clip(unit, -1.0, 1.0)), ()


def evaluation_action(scale: ActionScale, state: ActorState, obs: Any, key: PRNGKeyArray) -> Any:
    """Return c + h μ(s), without noise, for each of N observations."""
    del key
    return to_env(scale, unit_action(state.actor, obs))


def assess(state: Any, obs: Float[Array, "N inputs"]) -> dict[str, Float[Array, " N"]]:
    """Return min_k Q_k(s, μ(s)) for each of N observations."""
    values = action_values(state.critics, obs, unit_action(state.actor, obs))
    return {"value": values.min(0)}


def actor_loss(
    actor: list[Params], critics: Critics, obs: Float[Array, "B inputs"], valid: Bool[Array, " B"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return -mean Q_1(s, μ(s)) over the valid rows, and the share of actions at a bound.

    Only the first critic is used. Differentiate with respect to `actor` only.
    """
    unit = unit_action(actor, obs)
    (value,) = action_values(critics[:1], obs, unit)
    at_bound = (jnp.abs(unit) > 0.99).astype(jnp.float32).mean(-1)
    return -masked_mean(value, valid), masked_mean(at_bound, valid)
