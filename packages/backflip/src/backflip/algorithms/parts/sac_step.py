"""The state of soft actor-critic and one gradient step, for discrete and continuous actions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.interface import Metrics
from backflip.algorithms.parts.adam import adam_step, first_moments
from backflip.core.targets import polyak


class SACState(NamedTuple):
    """Everything SAC carries from one update to the next.

    Attributes:
        actor: θ.
        critics: φ, of both critics.
        target_critics: φ⁻, of both critics.
        log_temperature: log α.
        actor_moments: Adam's moments of θ.
        critic_moments: Adam's moments of φ.
        temperature_moments: Adam's moments of log α.
    """

    actor: Any
    critics: Any
    target_critics: Any
    log_temperature: Float[Array, ""]
    actor_moments: Any
    critic_moments: Any
    temperature_moments: Any


def first_state(config: SACConfig, actor: Any, critics: Any) -> SACState:
    """Return the state before the first update, as NumPy arrays."""
    log_temperature: Any = np.asarray(np.log(config.initial_temperature), np.float32)
    return SACState(
        actor,
        critics,
        jax.tree.map(np.copy, critics),
        log_temperature,
        *map(first_moments, (actor, critics, log_temperature)),
    )


def sac_step(
    config: SACConfig,
    state: SACState,
    critic_loss: Callable[[Any], tuple[Float[Array, ""], Float[Array, "2 B"]]],
    actor_loss: Callable[[Any, Any], tuple[Float[Array, ""], Float[Array, ""]]],
    target_entropy: float,
) -> tuple[SACState, Metrics, Float[Array, "2 B"]]:
    """Return the state after a step of critics, policy and temperature, metrics, and Q_k(s, a).

    Args:
        config: learning rates and τ.
        state: the state before the step.
        critic_loss: (φ) -> L_Q and the Q_k(s, a).
        actor_loss: (θ, new φ) -> L_π and the policy's entropy H.
        target_entropy: H̄.
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
    alpha_loss, gradient = jax.value_and_grad(temperature_loss)(
        state.log_temperature, entropy, target_entropy
    )
    log_temperature, temperature_moments, _ = adam_step(
        state.log_temperature, gradient, state.temperature_moments, config.temperature_learning_rate
    )
    targets = polyak(state.target_critics, critics, config.tau)
    moments = (actor_moments, critic_moments, temperature_moments)
    measured = {
        "q_loss": q_loss,
        "policy_loss": policy_loss,
        "temperature_loss": alpha_loss,
        "temperature": jnp.exp(state.log_temperature),
        "entropy": entropy,
        "critic_grad_norm": critic_norm,
        "actor_grad_norm": actor_norm,
    }
    return SACState(actor, critics, targets, log_temperature, *moments), measured, values


def temperature_loss(
    log_temperature: Float[Array, ""], entropy: Float[Array, ""], target_entropy: float
) -> Float[Array, ""]:
    """Return log α (H - H̄): α falls if the policy has more entropy than the target.

    The gradient reaches log α only.

    Source: Haarnoja et al. 2018, arXiv:1812.05905, eq. 18, with log α instead of α, as in the
    authors' code: the minimum is the same, and α stays above 0.

    Args:
        log_temperature: log α.
        entropy: H of the policy, in nats.
        target_entropy: H̄.
    """
    return log_temperature * jax.lax.stop_gradient(entropy - target_entropy)
