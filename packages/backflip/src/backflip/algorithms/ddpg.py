"""Deep deterministic policy gradient: a deterministic policy that maximises a learned Q(s, a).

Source: Lillicrap et al. 2016, arXiv:1509.02971, algorithm 1.

    G = r + γ (1 - terminated) Q_φ⁻(s', μ_θ⁻(s'))
    L_Q(φ) = mean ½ (Q_φ(s, a) - G)²
    L_μ(θ) = -mean Q_φ(s, μ_θ(s))
    φ⁻ ← φ⁻ + τ (φ - φ⁻),   θ⁻ ← θ⁻ + τ (θ - θ⁻)

Policy and critic see actions scaled to [-1, 1]; the environment gets its own units.

Departures from the paper, most of them those of Fujimoto et al. 2018 (arXiv:1802.09477, "our
DDPG"):
  * independent normal noise instead of an Ornstein-Uhlenbeck process;
  * uniformly random actions before learning starts;
  * two layers of 256 in both networks; the action goes into the critic's first layer;
  * one learning rate of 1e-3, τ = 0.005, minibatches of 256, no weight decay, no normalisation;
  * the last layers are initialised like the others;
  * U gradient steps after T env steps, instead of one after each;
  * a truncated step bootstraps.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.entries.ddpg import DDPGConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts import deterministic_policy
from backflip.algorithms.parts.action_scale import ActionScale, action_scale, rows_in_units
from backflip.algorithms.parts.adam import adam_step, first_moments
from backflip.algorithms.parts.critics import (
    Critics,
    action_values,
    critic_loss,
    critic_metrics,
    first_critics,
)
from backflip.algorithms.parts.deterministic_policy import actor_loss, first_actor, unit_action
from backflip.algorithms.parts.identities import largest, rows_to_check
from backflip.algorithms.parts.replay_settings import refuse_unworkable, replay_plan
from backflip.algorithms.parts.reward_metrics import reward_metrics
from backflip.algorithms.parts.saved_policy import saved_policy, with_saved_policy
from backflip.core.gradients import update_ratio
from backflip.core.identities import bellman_errors
from backflip.core.spec import EnvSpec
from backflip.core.targets import bellman_target, polyak
from backflip.core.types import Transition
from backflip.networks.layers import Params


class DDPGState(NamedTuple):
    """Everything DDPG carries from one update to the next.

    Attributes:
        actor: θ.
        critics: φ, in a list of one.
        target_actor: θ⁻.
        target_critics: φ⁻, in a list of one.
        actor_moments: Adam's moments of θ.
        critic_moments: Adam's moments of φ.
    """

    actor: list[Params]
    critics: Critics
    target_actor: list[Params]
    target_critics: Critics
    actor_moments: Any
    critic_moments: Any


def ddpg(config: DDPGConfig, spec: EnvSpec) -> Algorithm:
    """Return DDPG for the spaces of `spec`.

    Raises:
        UsageError: DDPG does not support the spaces, or the settings are invalid.
    """
    scale = action_scale("ddpg", spec)
    refuse_unworkable(config, spec)
    return Algorithm(
        name="ddpg",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, spec, scale),
        act=partial(deterministic_policy.act, scale, config.exploration_noise),
        evaluation_action=partial(deterministic_policy.evaluation_action, scale),
        update=partial(update, config, scale),
        policy=saved_policy,
        with_policy=with_saved_policy,
        replay=replay_plan(config),
        assess=deterministic_policy.assess,
    )


def init(config: DDPGConfig, spec: EnvSpec, scale: ActionScale, seed: int) -> DDPGState:
    """Return the state before the first update, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    actor = first_actor(rng, spec, scale, config.hidden)
    critics = first_critics(rng, spec, scale.dimensions, config.hidden, 1)
    following: Any = jax.tree.map(np.copy, (actor, critics))
    return DDPGState(actor, critics, *following, *map(first_moments, (actor, critics)))


def update(
    config: DDPGConfig, scale: ActionScale, state: DDPGState, batch: Transition, key: PRNGKeyArray
) -> tuple[DDPGState, Metrics]:
    """Return the state after a gradient step on each of U minibatches (axes U, B), and metrics.

    Invalid rows do not enter the losses.
    """
    del key
    batch = rows_in_units(scale, batch)
    after, (measured, values, goals) = jax.lax.scan(partial(step, config), state, batch)
    metrics = jax.tree.map(jnp.mean, measured) | critic_metrics(values, goals, batch.valid)
    metrics |= reward_metrics(batch.reward, batch.valid)
    metrics["target_update_ratio"] = update_ratio(state.target_critics, after.target_critics)
    metrics["target_error_max"] = target_error(state, batch, goals)
    moved = (state.actor, state.critics), (after.actor, after.critics)
    return after, metrics | {"update_ratio": update_ratio(*moved)}


def step(
    config: DDPGConfig, state: DDPGState, rows: Transition
) -> tuple[DDPGState, tuple[Metrics, Float[Array, "1 B"], Float[Array, " B"]]]:
    """Return the state after one gradient step of each network, metrics, Q(s, a) and G."""
    goal = targets(state.target_actor, state.target_critics, rows)
    grade = jax.value_and_grad(critic_loss, has_aux=True)
    (q_loss, values), gradient = grade(state.critics, rows, goal)
    critics, critic_moments, critic_norm = adam_step(
        state.critics, gradient, state.critic_moments, config.critic_learning_rate
    )
    grade = jax.value_and_grad(actor_loss, has_aux=True)
    (policy_loss, saturation), gradient = grade(state.actor, critics, rows.obs, rows.valid)
    actor, actor_moments, actor_norm = adam_step(
        state.actor, gradient, state.actor_moments, config.actor_learning_rate
    )
    after = DDPGState(
        actor,
        critics,
        polyak(state.target_actor, actor, config.tau),
        polyak(state.target_critics, critics, config.tau),
        actor_moments,
        critic_moments,
    )
    measured = {
        "q_loss": q_loss,
        "policy_loss": policy_loss,
        "action_saturation": saturation,
        "critic_grad_norm": critic_norm,
        "actor_grad_norm": actor_norm,
    }
    return after, (measured, values, goal)


def targets(
    target_actor: list[Params], target_critics: Critics, rows: Transition
) -> Float[Array, " B"]:
    """Return G = r + γ (1 - terminated) Q_φ⁻(s', μ_θ⁻(s'))."""
    following = unit_action(target_actor, rows.next_obs)
    (value,) = action_values(target_critics, rows.next_obs, following)
    return bellman_target(rows.reward, rows.extra.discount, rows.terminated, value)


def target_error(
    state: DDPGState, batch: Transition, goals: Float[Array, "U B"]
) -> Float[Array, ""]:
    """Return the largest error of G in some rows of the first minibatch, computed once more."""
    rows = rows_to_check(batch)
    action = unit_action(state.target_actor, rows.next_obs)
    (value,) = action_values(state.target_critics, rows.next_obs, action)
    errors = bellman_errors(
        rows.reward, rows.extra.discount, rows.terminated, value, goals[0, : len(rows.reward)]
    )
    return largest(errors, rows.valid)
