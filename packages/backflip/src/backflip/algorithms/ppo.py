"""Proximal policy optimisation with the clipped surrogate objective.

Source: Schulman et al. 2017, arXiv:1707.06347, eqs. 7, 9 and 11, and the implementation details
collected by Huang et al. 2022 ("The 37 implementation details of PPO").

    ρ = π_θ(a|s) / π_old(a|s)
    L(θ) = mean [-min(ρ A, clip(ρ, 1 - ε, 1 + ε) A) + c₁ ½ (V_θ(s) - G)² - c₂ H(π_θ(·|s))]
    A_t = Σ_l (γ λ)^l δ_{t+l},   G_t = A_t + V(s_t)
    δ_t = r_{t+1} + γ (1 - terminated) V(s_{t+1}) - V(s_t)

Departures from the paper:
  * the advantage estimator is the recursion of arXiv:1506.02438, eq. 16 (eq. 11's exponent is a
    misprint), and a truncated step bootstraps from the value of the true successor;
  * the defaults are for classic control, not the paper's (3e-4, γ .99, λ .95, 2048 steps of one
    environment, 10 epochs of minibatches of 64);
  * optional scaling of observations and rewards by running statistics (rewards are not shifted);
  * advantages normalised per minibatch, global gradient-norm clip, Adam's ε of 1e-5, as in the
    authors' code;
  * advantages that are noise: the policy's learning rate is multiplied by min(1, σ_A / (c σ_R)),
    with σ_A the standard deviation of the batch's advantages, σ_R the running one of the discounted
    return and c = `advantage_floor` (0: off). Normalised noise would move the policy as far as
    real advantages. DreamerV3 (Hafner et al. 2023, arXiv:2301.04104) bounds its divisor for the
    same reason. The value function keeps its learning rate;
  * optional noise that is correlated over env steps (arXiv:2312.11091), which explores farther.
    Each action is from π_old(·|s), but not independent of those before it;
  * optional lower bound of log σ: after an update, log σ ← max(log σ, `least_log_std`). A policy
    that no longer explores cannot learn a reward that changes later, as in teaching;
  * no adaptive KL penalty; the value loss is clipped only if `value_clip_range` is above 0;
  * the first layer on images takes non-overlapping patches, unless `network=nature`;
  * rows are shuffled by a random bijection, which cannot produce every order;
  * evaluation takes the most probable action; from pixels it samples.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts import stochastic_policy
from backflip.algorithms.parts.adam import adam_step, first_moments
from backflip.algorithms.parts.identities import rollout_identities
from backflip.algorithms.parts.invalid_rows import blank_invalid
from backflip.algorithms.parts.normalization import (
    normalize_rewards,
    observe,
    observe_returns,
    wrap_angles,
)
from backflip.algorithms.parts.rollout_metrics import rollout_metrics
from backflip.algorithms.parts.rollout_rows import Rows, prepare
from backflip.algorithms.parts.stochastic_policy import Actor, policy_and_value
from backflip.core import statistics
from backflip.core.colored_noise import octaves_of
from backflip.core.gradients import clip_by_global_norm, update_ratio
from backflip.core.losses import (
    approximate_kl,
    clipped_squared_error,
    clipped_surrogate,
    squared_error,
)
from backflip.core.returns import gae
from backflip.core.schedules import linear
from backflip.core.shuffle import shuffle
from backflip.core.spec import EnvSpec
from backflip.core.statistics import RunningStatistics, masked_mean, masked_std, standardize
from backflip.core.types import Transition
from backflip.networks.actor_critic import actor_critic
from backflip.networks.layers import Params

ADAM_EPSILON = 1e-5  # as in the authors' code; Adam's own default is 1e-8


class PPOState(NamedTuple):
    """Everything PPO carries from one update to the next.

    Attributes:
        params: network parameters, and `log_std` (A,) for continuous actions.
        optimizer: Adam's moments.
        obs_statistics: of all valid observations since the start.
        return_statistics: of all discounted returns since the start.
        running_return: discounted return of each environment's current episode.
        updates: number of updates done.
    """

    params: Params
    optimizer: Any
    obs_statistics: RunningStatistics
    return_statistics: RunningStatistics
    running_return: Float[Array, " N"]
    updates: Int[Array, ""]


def ppo(config: PPOConfig, spec: EnvSpec) -> Algorithm:
    """Return PPO for the spaces of `spec`."""
    net = actor_critic(spec, config.hidden, config.network)
    angles = spec.angles if config.wrap_angles else ()
    scaled = config.normalize_obs and not spec.is_image
    actor = Actor(spec, net, scaled, angles, config.bound_mean, config.noise_color)
    colored = stochastic_policy.has_colored_noise(actor)
    return Algorithm(
        name="ppo",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        episode_steps=config.episode_steps,
        whole_share=config.whole_share,
        noise_octaves=octaves_of(config.rollout_length) if colored else 0,
        init=partial(init, config, actor),
        act=partial(stochastic_policy.act, actor),
        evaluation_action=partial(stochastic_policy.evaluation_action, actor),
        update=partial(update, config, actor),
        policy=stochastic_policy.saved_policy,
        with_policy=stochastic_policy.with_saved_policy,
        assess=partial(stochastic_policy.assess, actor),
        sample=partial(stochastic_policy.sample, actor),
    )


def init(config: PPOConfig, actor: Actor, seed: int) -> PPOState:
    """Return the state before the first update, as NumPy arrays."""
    params = stochastic_policy.first_params(actor, seed, config.initial_log_std)
    running_return: Any = np.zeros(config.num_envs, np.float32)
    updates: Any = np.zeros((), np.int32)
    return PPOState(
        params,
        first_moments(params),
        statistics.empty(stochastic_policy.observed_shape(actor.spec)),
        statistics.empty(()),
        running_return,
        updates,
    )


def update(
    config: PPOConfig, actor: Actor, state: PPOState, batch: Transition, key: PRNGKeyArray
) -> tuple[PPOState, Metrics]:
    """Return the state after `epochs` passes over the batch (axes T, N), and metrics.

    Invalid rows change nothing.
    """
    batch = blank_invalid(batch)
    if config.normalize_rewards:
        batch, state = normalize_rewards(config.discount, state, batch)
    elif config.advantage_floor:
        state = observe_returns(config.discount, state, batch)
    rows = prepare(actor, state, batch, partial(estimate, config))
    now = schedules(config, state)
    share = signal_share(config, state, rows)
    params, optimizer, measured = _improve(config, actor, state, rows, now, share, key)
    metrics = rollout_metrics(actor.spec, batch, rows, config.discount)
    metrics |= rollout_identities(
        actor,
        state,
        params,
        batch,
        rows,
        updates=state.updates,
        discount=config.discount,
        gae_lambda=config.gae_lambda,
    )
    metrics |= jax.tree.map(jnp.mean, measured) | now._asdict() | {"signal_share": share}
    metrics["first_ratio_error"] = measured["ratio_error"][0, 0]
    metrics["update_ratio"] = update_ratio(state.params, params)
    del metrics["ratio_error"]
    if actor.normalize_obs:
        if actor.angles:
            batch = batch._replace(obs=wrap_angles(actor.angles, batch.obs))
        state = state._replace(obs_statistics=observe(state.obs_statistics, batch))
    params = stochastic_policy.with_least_log_std(params, config.least_log_std)
    return state._replace(params=params, optimizer=optimizer, updates=state.updates + 1), metrics


def estimate(config: PPOConfig, *stream: Array) -> tuple[Float[Array, " T"], Float[Array, " T"]]:
    """Return generalised advantages A and value targets A + V of one environment's stream."""
    advantages = gae(*stream, discount=config.discount, gae_lambda=config.gae_lambda)
    return advantages, advantages + stream[1]


class Schedules(NamedTuple):
    """Values of the linear schedules in one update."""

    learning_rate: Float[Array, ""]
    clip_range: Float[Array, ""]
    entropy_coef: Float[Array, ""]


def schedules(config: PPOConfig, state: PPOState) -> Schedules:
    """Return the values of the linear schedules in this update."""
    progress = state.updates / config.updates
    return Schedules(
        linear(config.learning_rate, config.learning_rate_end, progress),
        linear(config.clip_range, config.clip_range_end, progress),
        linear(config.entropy_coef, config.entropy_coef_end, progress),
    )


def _improve(
    config: PPOConfig,
    actor: Actor,
    state: PPOState,
    rows: Rows,
    now: Schedules,
    share: Float[Array, ""],
    key: PRNGKeyArray,
) -> tuple[Params, Any, dict[str, Float[Array, "E M"]]]:
    """Return parameters and moments after E epochs of M minibatches, and metrics of each."""
    shares = None
    if config.advantage_floor:
        shares = _shares(actor, state.params, share)

    def epoch(carry: Any, key: PRNGKeyArray) -> tuple[Any, dict[str, Float[Array, " M"]]]:
        order = shuffle(key, rows.valid.shape[0]).reshape(config.minibatches, -1)
        return jax.lax.scan(minibatch, carry, order)

    def minibatch(carry: Any, indices: Int[Array, " R"]) -> tuple[Any, Metrics]:
        def choose(x: Array) -> Array:
            return x[indices]

        params, optimizer = carry
        chosen = rows if config.minibatches == 1 else jax.tree.map(choose, rows)
        gradient, measured = jax.grad(loss, argnums=2, has_aux=True)(
            config, actor, params, chosen, now.clip_range, now.entropy_coef
        )
        gradient, norm = clip_by_global_norm(gradient, config.max_grad_norm)
        rate = now.learning_rate
        params, optimizer, _ = adam_step(
            params, gradient, optimizer, rate, eps=ADAM_EPSILON, shares=shares
        )
        return (params, optimizer), measured | {"grad_norm": norm}

    keys = jax.random.split(key, config.epochs)
    (params, optimizer), measured = jax.lax.scan(epoch, (state.params, state.optimizer), keys)
    return params, optimizer, measured


def _shares(actor: Actor, params: Params, share: Float[Array, ""]) -> Params:
    """Return `share` for parameters that the policy depends on, else 1."""

    def of_parameter(acts: Any) -> Float[Array, "..."]:
        return jnp.where(acts > 0, share, 1.0)

    return jax.tree.map(of_parameter, stochastic_policy.acting_parameters(actor, params))


def loss(
    config: PPOConfig,
    actor: Actor,
    params: Params,
    rows: Rows,
    clip_range: Float[Array, ""],
    entropy_coef: Float[Array, ""],
) -> tuple[Float[Array, ""], Metrics]:
    """Return L_clip + c₁ L_value - c₂ H over the valid rows (arXiv:1707.06347, negated eq. 9)."""
    policy, value = policy_and_value(actor, params, rows.inputs)
    log_prob = policy.log_prob(rows.action)
    advantage = standardize(rows.advantage, rows.valid)
    surrogate = clipped_surrogate(log_prob, rows.log_prob, advantage, clip_range)
    entropy = masked_mean(policy.entropy(), rows.valid)
    value_loss = masked_mean(value_error(config, value, rows), rows.valid)
    policy_loss = masked_mean(surrogate, rows.valid)
    distance = jnp.abs(jnp.exp(log_prob - rows.log_prob) - 1.0)
    total = policy_loss + config.value_coef * value_loss - entropy_coef * entropy
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "approx_kl": masked_mean(approximate_kl(log_prob, rows.log_prob), rows.valid),
        "clip_fraction": masked_mean((distance > clip_range).astype(jnp.float32), rows.valid),
        "ratio_error": jnp.where(rows.valid, distance, 0.0).max(),
    }


def signal_share(config: PPOConfig, state: PPOState, rows: Rows) -> Float[Array, ""]:
    """Return the share of the learning rate that the policy gets from this batch.

        min(1, σ_A / (c σ_R))

    σ_A is the standard deviation of the batch's advantages before they are normalised, σ_R the
    running standard deviation of the discounted return, in the same unit, and c is
    `advantage_floor`; 1 if it is 0.
    """
    if not config.advantage_floor:
        return jnp.ones(())
    floor = config.advantage_floor * (
        1.0 if config.normalize_rewards else state.return_statistics.std
    )
    deviation = masked_std(rows.advantage, rows.valid)
    return jnp.where(deviation < floor, deviation / floor, 1.0)


def value_error(config: PPOConfig, value: Float[Array, " B"], rows: Rows) -> Float[Array, " B"]:
    """Return ½ (V - G)² of each row, clipped if `value_clip_range` is above 0."""
    if not config.value_clip_range:
        return squared_error(value, rows.target)
    old_value = rows.target - rows.advantage  # G = A + V_old
    return clipped_squared_error(value, old_value, rows.target, config.value_clip_range)
