"""Twin delayed DDPG: DDPG with two critics and a policy that is updated less often.

Source: Fujimoto et al. 2018, arXiv:1802.09477, algorithm 1.

    ã = clip(μ_θ⁻(s') + clip(ε, -c, c), -1, 1),   ε ~ N(0, σ̃²)
    G = r + γ (1 - terminated) min_k Q_φk⁻(s', ã)
    L_Q(φ) = Σ_k mean ½ (Q_φk(s, a) - G)²
    every d-th gradient step:   L_μ(θ) = -mean Q_φ1(s, μ_θ(s));   φ⁻, θ⁻ follow φ, θ by τ

Policy and critics see actions scaled to [-1, 1], the unit of σ̃ and c; the environment gets its own.

Departures from the paper:
  * minibatches of 256 and one layer shape for both networks, as in the authors' later code;
  * U gradient steps after T env steps, instead of one after each; d divides U, so that the schedule
    is static;
  * a truncated step bootstraps (as in the authors' code).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.entries.td3 import TD3Config
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
from backflip.algorithms.rollouts import gradient_steps
from backflip.core.gradients import update_ratio
from backflip.core.identities import bellman_errors
from backflip.core.spec import EnvSpec
from backflip.core.targets import bellman_target, polyak
from backflip.core.types import Transition
from backflip.networks.layers import Params
from runshelf.errors import UsageError


class TD3State(NamedTuple):
    """Everything TD3 carries from one update to the next.

    Attributes:
        actor: θ.
        critics: φ, of both critics.
        target_actor: θ⁻.
        target_critics: φ⁻, of both critics.
        actor_moments: Adam's moments of θ.
        critic_moments: Adam's moments of φ.
    """

    actor: list[Params]
    critics: Critics
    target_actor: list[Params]
    target_critics: Critics
    actor_moments: Any
    critic_moments: Any


def td3(config: TD3Config, spec: EnvSpec) -> Algorithm:
    """Return TD3 for the spaces of `spec`.

    Raises:
        UsageError: TD3 does not support the spaces, or the settings are invalid.
    """
    scale = action_scale("td3", spec)
    refuse_unworkable(config, spec)
    _refuse_uneven(config)
    return Algorithm(
        name="td3",
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


def init(config: TD3Config, spec: EnvSpec, scale: ActionScale, seed: int) -> TD3State:
    """Return the state before the first update, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    actor = first_actor(rng, spec, scale, config.hidden)
    critics = first_critics(rng, spec, scale.dimensions, config.hidden, 2)
    following: Any = jax.tree.map(np.copy, (actor, critics))
    return TD3State(actor, critics, *following, *map(first_moments, (actor, critics)))


def update(
    config: TD3Config, scale: ActionScale, state: TD3State, batch: Transition, key: PRNGKeyArray
) -> tuple[TD3State, Metrics]:
    """Return the state after a gradient step on each of U minibatches (axes U, B), and metrics.

    Invalid rows do not enter the losses.
    """
    batch = rows_in_units(scale, batch)
    noise = smoothing_noise(config, key, batch.action.shape)

    def by_round(x: Array) -> Array:
        return x.reshape(-1, config.policy_delay, *x.shape[1:])

    rounds = jax.tree.map(by_round, (batch, noise))
    after, (measured, values, goals) = jax.lax.scan(partial(one_round, config), state, rounds)
    values, goals = (x.reshape(-1, *x.shape[2:]) for x in (values, goals))
    metrics = jax.tree.map(jnp.mean, measured) | critic_metrics(values, goals, batch.valid)
    metrics |= reward_metrics(batch.reward, batch.valid)
    metrics["target_update_ratio"] = update_ratio(state.target_critics, after.target_critics)
    metrics["target_error_max"] = target_error(state, batch, noise[0], goals)
    moved = (state.actor, state.critics), (after.actor, after.critics)
    return after, metrics | {"update_ratio": update_ratio(*moved)}


def smoothing_noise(
    config: TD3Config, key: PRNGKeyArray, shape: tuple[int, ...]
) -> Float[Array, "U B A"]:
    """Return clip(ε, -c, c) with ε ~ N(0, σ̃²)."""
    noise = config.target_noise * jax.random.normal(key, shape)
    return jnp.clip(noise, -config.target_noise_clip, config.target_noise_clip)


def one_round(
    config: TD3Config, state: TD3State, minibatches: tuple[Transition, Float[Array, "d B A"]]
) -> tuple[TD3State, tuple[Metrics, Float[Array, "d 2 B"], Float[Array, "d B"]]]:
    """Return the state after d gradient steps of the critics and one of the policy, and metrics."""
    state, (measured, values, goals) = jax.lax.scan(
        partial(critic_step, config), state, minibatches
    )
    newest: Transition = jax.tree.map(_last, minibatches[0])
    grade = jax.value_and_grad(actor_loss, has_aux=True)
    (policy_loss, saturation), gradient = grade(
        state.actor, state.critics, newest.obs, newest.valid
    )
    actor, actor_moments, actor_norm = adam_step(
        state.actor, gradient, state.actor_moments, config.actor_learning_rate
    )
    metrics = jax.tree.map(jnp.mean, measured) | {
        "policy_loss": policy_loss,
        "action_saturation": saturation,
        "actor_grad_norm": actor_norm,
    }
    state = state._replace(
        actor=actor,
        target_actor=polyak(state.target_actor, actor, config.tau),
        target_critics=polyak(state.target_critics, state.critics, config.tau),
        actor_moments=actor_moments,
    )
    return state, (metrics, values, goals)


def critic_step(
    config: TD3Config, state: TD3State, minibatch: tuple[Transition, Float[Array, "B A"]]
) -> tuple[TD3State, tuple[Metrics, Float[Array, "2 B"], Float[Array, " B"]]]:
    """Return the state after one gradient step of both critics, metrics, Q_k(s, a) and G."""
    rows, noise = minibatch
    goal = targets(state.target_actor, state.target_critics, rows, noise)
    grade = jax.value_and_grad(critic_loss, has_aux=True)
    (q_loss, values), gradient = grade(state.critics, rows, goal)
    critics, critic_moments, critic_norm = adam_step(
        state.critics, gradient, state.critic_moments, config.critic_learning_rate
    )
    state = state._replace(critics=critics, critic_moments=critic_moments)
    return state, ({"q_loss": q_loss, "critic_grad_norm": critic_norm}, values, goal)


def targets(
    target_actor: list[Params],
    target_critics: Critics,
    rows: Transition,
    noise: Float[Array, "B A"],
) -> Float[Array, " B"]:
    """Return G = r + γ (1 - terminated) min_k Q_φk⁻(s', clip(μ_θ⁻(s') + noise, -1, 1))."""
    following = jnp.clip(unit_action(target_actor, rows.next_obs) + noise, -1.0, 1.0)
    value = action_values(target_critics, rows.next_obs, following).min(0)
    return bellman_target(rows.reward, rows.extra.discount, rows.terminated, value)


def target_error(
    state: TD3State, batch: Transition, noise: Float[Array, "B A"], goals: Float[Array, "U B"]
) -> Float[Array, ""]:
    """Return the largest error of G in some rows of the first minibatch, computed once more."""
    rows = rows_to_check(batch)
    count = len(rows.reward)
    action = jnp.clip(unit_action(state.target_actor, rows.next_obs) + noise[:count], -1.0, 1.0)
    value = action_values(state.target_critics, rows.next_obs, action).min(0)
    errors = bellman_errors(
        rows.reward, rows.extra.discount, rows.terminated, value, goals[0, :count]
    )
    return largest(errors, rows.valid)


def _last(x: Array) -> Array:
    return x[-1]


def _refuse_uneven(config: TD3Config) -> None:
    steps, delay = gradient_steps(config), config.policy_delay
    if delay < 1 or steps % delay:
        raise UsageError(
            "settings: `policy_delay` must divide the gradient steps after a rollout, "
            f"updates_per_step x num_envs x rollout_length = {steps}, got {delay}; "
            "try policy_delay=1 or another rollout_length"
        )
