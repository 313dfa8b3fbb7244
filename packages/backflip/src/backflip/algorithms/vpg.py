"""Vanilla policy gradient with a fitted value function.

Source: Sutton et al. 2000, "Policy gradient methods for reinforcement learning with function
approximation", theorem 1; advantages of Schulman et al. 2016, arXiv:1506.02438, eq. 16; the form
and the defaults are those of OpenAI's Spinning Up.

    ∇J = E[∇ log π(a_t|s_t) Ψ_t]    Ψ: generalised advantage, or reward to go
    V  = argmin E[½ (V(s_t) - G_t)²]    by gradient steps after the policy's step

    G_t = Σ_k γ^k r_{t+k+1}, to the end of the episode; if a time limit or the end of the rollout
    cuts it, V of the last state replaces the missing rewards.

Departures from the paper:
  * Ψ is normalised to mean 0 and standard deviation 1 in each batch; the optimiser is Adam;
  * an episode cut by a time limit or the end of the rollout bootstraps;
  * no factor γ^t for late states: every env step has the same weight;
  * optional scaling of observations and rewards by running statistics;
  * episodes continue across updates, where Spinning Up cuts them.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.entries.vpg import VPGConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts import stochastic_policy
from backflip.algorithms.parts.adam import adam_step, first_moments
from backflip.algorithms.parts.invalid_rows import blank_invalid
from backflip.algorithms.parts.normalization import normalize_rewards, observe
from backflip.algorithms.parts.rollout_metrics import rollout_metrics
from backflip.algorithms.parts.rollout_rows import Rows, prepare
from backflip.algorithms.parts.stochastic_policy import Actor, policy_and_value
from backflip.core import statistics
from backflip.core.gradients import update_ratio
from backflip.core.losses import approximate_kl, policy_gradient, squared_error
from backflip.core.returns import gae
from backflip.core.spec import EnvSpec
from backflip.core.statistics import RunningStatistics, masked_mean, standardize
from backflip.core.types import Transition
from backflip.networks.actor_critic import POLICY_HEAD_GAIN, ActorCritic, acts_without
from backflip.networks.layers import Params
from backflip.networks.pixel_networks import PixelNetwork
from backflip.networks.single_head import action_outputs, single_head


class VPGState(NamedTuple):
    """Everything VPG carries from one update to the next.

    Attributes:
        params: `policy` and `value`, two networks, and `log_std` (A,) for continuous actions.
        optimizer: Adam's moments of the policy's parameters.
        value_optimizer: Adam's moments of the value function's parameters.
        obs_statistics: of all valid observations since the start.
        return_statistics: of all discounted returns since the start.
        running_return: discounted return of each environment's current episode.
    """

    params: Params
    optimizer: Any
    value_optimizer: Any
    obs_statistics: RunningStatistics
    return_statistics: RunningStatistics
    running_return: Float[Array, " N"]


def vpg(config: VPGConfig, spec: EnvSpec) -> Algorithm:
    """Return VPG for the spaces of `spec`."""
    net = separate_networks(spec, config.hidden, config.network)
    actor = Actor(spec, net, config.normalize_obs and not spec.is_image)
    return Algorithm(
        name="vpg",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, actor),
        act=partial(stochastic_policy.act, actor),
        evaluation_action=partial(stochastic_policy.evaluation_action, actor),
        update=partial(update, config, actor),
        policy=stochastic_policy.saved_policy,
        with_policy=stochastic_policy.with_saved_policy,
        assess=partial(stochastic_policy.assess, actor),
        sample=partial(stochastic_policy.sample, actor),
    )


def separate_networks(
    spec: EnvSpec, hidden: tuple[int, ...], pixels: PixelNetwork = "auto"
) -> ActorCritic:
    """Return policy and value function without shared parameters, for images too.

    Steps of the value function then leave the policy unchanged.
    """
    policy = single_head(spec, action_outputs(spec), hidden, POLICY_HEAD_GAIN, pixels)
    value = single_head(spec, 1, hidden, 1.0, pixels)

    def first(rng: np.random.Generator) -> Params:
        return {"policy": policy.init(rng), "value": value.init(rng)}

    def apply(params: Params, inputs: Array) -> tuple[Float[Array, "B A"], Float[Array, " B"]]:
        return policy.apply(params["policy"], inputs), value.apply(params["value"], inputs)[:, 0]

    return ActorCritic(first, policy.preprocess, apply, acts_without("value"))


def init(config: VPGConfig, actor: Actor, seed: int) -> VPGState:
    """Return the state before the first update, as NumPy arrays."""
    params = stochastic_policy.first_params(actor, seed, config.initial_log_std)
    policy_params, value_params = split(params)
    running_return: Any = np.zeros(config.num_envs, np.float32)
    return VPGState(
        params,
        first_moments(policy_params),
        first_moments(value_params),
        statistics.empty(stochastic_policy.observed_shape(actor.spec)),
        statistics.empty(()),
        running_return,
    )


def split(params: Params) -> tuple[Params, Params]:
    """Return the policy's parameters and the value function's."""
    return {name: x for name, x in params.items() if name != "value"}, {"value": params["value"]}


def update(
    config: VPGConfig, actor: Actor, state: VPGState, batch: Transition, key: PRNGKeyArray
) -> tuple[VPGState, Metrics]:
    """Return the state after one policy step and `value_gradient_steps` of the value function.

    The batch has axes (T, N). Invalid rows change nothing.
    """
    del key
    batch = blank_invalid(batch)
    if config.normalize_rewards:
        batch, state = normalize_rewards(config.discount, state, batch)
    rows = prepare(actor, state, batch, partial(estimate, config))
    policy_params, optimizer, measured = _improve_policy(config, actor, state, rows)
    value_params, value_optimizer, fitted = _fit_value(config, actor, state, rows)
    params = policy_params | value_params
    metrics = rollout_metrics(actor.spec, batch, rows, config.discount) | measured | fitted
    metrics["update_ratio"] = update_ratio(state.params, params)
    if actor.normalize_obs:
        state = state._replace(obs_statistics=observe(state.obs_statistics, batch))
    state = state._replace(params=params, optimizer=optimizer, value_optimizer=value_optimizer)
    return state, metrics


def estimate(config: VPGConfig, *stream: Array) -> tuple[Float[Array, " T"], Float[Array, " T"]]:
    """Return Ψ and the value targets G of one environment's stream.

    G = A + V, where A is the generalised advantage with λ = 1.
    """
    to_go = gae(*stream, discount=config.discount, gae_lambda=1.0) + stream[1]
    if config.advantage == "reward_to_go":
        return to_go, to_go
    return gae(*stream, discount=config.discount, gae_lambda=config.gae_lambda), to_go


def policy_loss(
    actor: Actor, policy_params: Params, value_params: Params, rows: Rows
) -> tuple[Float[Array, ""], Metrics]:
    """Return the mean of -log π(a|s) Ψ over the valid rows, Ψ normalised, and metrics."""
    policy, _ = policy_and_value(actor, policy_params | value_params, rows.inputs)
    log_prob = policy.log_prob(rows.action)
    advantage = standardize(rows.advantage, rows.valid)
    mean = masked_mean(policy_gradient(log_prob, advantage), rows.valid)
    distance = jnp.abs(jnp.exp(log_prob - rows.log_prob) - 1.0)
    return mean, {
        "policy_loss": mean,
        "entropy": masked_mean(policy.entropy(), rows.valid),
        "first_ratio_error": jnp.where(rows.valid, distance, 0.0).max(),
    }


def value_loss(
    actor: Actor, policy_params: Params, value_params: Params, rows: Rows
) -> Float[Array, ""]:
    """Return the mean of ½ (V(s) - G)² over the valid rows."""
    _, value = policy_and_value(actor, policy_params | value_params, rows.inputs)
    return masked_mean(squared_error(value, rows.target), rows.valid)


def _improve_policy(
    config: VPGConfig, actor: Actor, state: VPGState, rows: Rows
) -> tuple[Params, Any, Metrics]:
    """Return the policy's parameters and moments after one step, and metrics."""
    before, value_params = split(state.params)
    gradient, measured = jax.grad(policy_loss, argnums=1, has_aux=True)(
        actor, before, value_params, rows
    )
    after, optimizer, norm = adam_step(before, gradient, state.optimizer, config.learning_rate)
    policy, _ = policy_and_value(actor, after | value_params, rows.inputs)
    moved = approximate_kl(policy.log_prob(rows.action), rows.log_prob)
    measured["approx_kl"] = masked_mean(moved, rows.valid)
    return after, optimizer, measured | {"grad_norm": norm}


def _fit_value(
    config: VPGConfig, actor: Actor, state: VPGState, rows: Rows
) -> tuple[Params, Any, Metrics]:
    """Return the value function's parameters and moments after its steps, and mean metrics."""
    policy_params, value_params = split(state.params)

    def step(carry: tuple[Params, Any], _: None) -> tuple[tuple[Params, Any], Metrics]:
        params, optimizer = carry
        loss, gradient = jax.value_and_grad(value_loss, argnums=2)(
            actor, policy_params, params, rows
        )
        params, optimizer, norm = adam_step(params, gradient, optimizer, config.value_learning_rate)
        return (params, optimizer), {"value_loss": loss, "value_grad_norm": norm}

    first = (value_params, state.value_optimizer)
    (params, optimizer), measured = jax.lax.scan(step, first, length=config.value_gradient_steps)
    return params, optimizer, jax.tree.map(jnp.mean, measured)
