"""What soft actor-critic carries and one gradient step of it, whatever kind its actions are of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.interface import Metrics
from backflip.algorithms.parts.adam import adam_step, first_moments
from backflip.algorithms.parts.temperature import temperature_loss
from backflip.core.targets import polyak


class SoftState(NamedTuple):
    """Everything SAC carries from one update to the next.

    Attributes:
        actor: θ.
        critics: φ, of both critics.
        target_critics: φ⁻, of both.
        log_temperature: log α.
        actor_moments: Adam's.
        critic_moments: Adam's.
        temperature_moments: Adam's.
    """

    actor: Any
    critics: Any
    target_critics: Any
    log_temperature: Float[Array, ""]
    actor_moments: Any
    critic_moments: Any
    temperature_moments: Any


def first_state(config: SACConfig, actor: Any, critics: Any) -> SoftState:
    """Return the state before the first update, as NumPy arrays."""
    log_temperature: Any = np.asarray(np.log(config.initial_temperature), np.float32)
    return SoftState(
        actor,
        critics,
        jax.tree.map(np.copy, critics),
        log_temperature,
        *map(first_moments, (actor, critics, log_temperature)),
    )


def soft_step(
    config: SACConfig,
    state: SoftState,
    critic_loss: Callable[[Any], tuple[Float[Array, ""], Float[Array, "2 B"]]],
    actor_loss: Callable[[Any, Any], tuple[Float[Array, ""], Float[Array, ""]]],
    wanted: float,
) -> tuple[SoftState, Metrics, Float[Array, "2 B"]]:
    """Return the state after a step of critics, policy and temperature, metrics, and Q_k(s, a).

    Args:
        config: the step sizes, and τ of the targets.
        state: before.
        critic_loss: (φ) -> L_Q and the Q_k(s, a).
        actor_loss: (θ, the new φ) -> L_π and the policy's entropy H.
        wanted: H̄, the entropy that α is to keep.
    """
    (q_loss, values), gradient = jax.value_and_grad(critic_loss, has_aux=True)(state.critics)
    critics, critic_moments, critic_norm = adam_step(
        state.critics, gradient, state.critic_moments, config.critic_learning_rate
    )
    (policy_loss, entropy), gradient = jax.value_and_grad(actor_loss, has_aux=True)(
        state.actor, critics
    )
    actor, actor_moments, actor_norm = adam_step(
        state.actor, gradient, state.actor_moments, config.actor_learning_rate
    )
    price, gradient = jax.value_and_grad(temperature_loss)(state.log_temperature, entropy, wanted)
    log_temperature, temperature_moments, _ = adam_step(
        state.log_temperature, gradient, state.temperature_moments, config.temperature_learning_rate
    )
    targets = polyak(state.target_critics, critics, config.tau)
    moments = (actor_moments, critic_moments, temperature_moments)
    measured = {
        "q_loss": q_loss,
        "policy_loss": policy_loss,
        "temperature_loss": price,
        "temperature": jnp.exp(state.log_temperature),
        "entropy": entropy,
        "critic_grad_norm": critic_norm,
        "actor_grad_norm": actor_norm,
    }
    return SoftState(actor, critics, targets, log_temperature, *moments), measured, values
