"""Advantage actor-critic: one gradient step after every few env steps of N environments.

Source: Mnih et al. 2016, arXiv:1602.01783, algorithm S3 and section 4: the n-step return, the
gradient of the policy with an entropy term, RMSProp. The synchronous form with all environments in
one batch is that of OpenAI's baselines ("A2C").

    G_t = Σ_{k<m} γ^k r_{t+k+1} + γ^m V(s_{t+m})    to the end of the rollout or episode
    L   = mean [-log π(a|s) (G - V(s)) + c₁ ½ (V(s) - G)² - c₂ H(π(·|s))]

Departures from the paper:
  * all environments step together and give one gradient; the paper's workers are asynchronous;
  * a truncated step bootstraps from the value of the true successor;
  * global gradient-norm clip; `gae_lambda` < 1 gives generalised advantages;
  * separate networks for policy and value on vectors; no recurrent network;
  * the first layer on images takes non-overlapping patches, unless `network=nature`;
  * optional scaling of observations and rewards by running statistics, and of advantages.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.algorithms.entries.a2c import A2CConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts import stochastic_policy
from backflip.algorithms.parts.identities import rollout_identities
from backflip.algorithms.parts.invalid_rows import blank_invalid
from backflip.algorithms.parts.normalization import normalize_rewards, observe
from backflip.algorithms.parts.rollout_metrics import rollout_metrics
from backflip.algorithms.parts.rollout_rows import Rows, prepare
from backflip.algorithms.parts.stochastic_policy import Actor, policy_and_value
from backflip.core import statistics
from backflip.core.gradients import clip_by_global_norm, update_ratio
from backflip.core.losses import policy_gradient, squared_error
from backflip.core.returns import gae
from backflip.core.schedules import linear
from backflip.core.spec import EnvSpec
from backflip.core.statistics import RunningStatistics, masked_mean, standardize
from backflip.core.types import Transition
from backflip.networks.actor_critic import actor_critic
from backflip.networks.layers import Params


class A2CState(NamedTuple):
    """Everything A2C carries from one update to the next.

    Attributes:
        params: network parameters, and `log_std` (A,) for continuous actions.
        optimizer: RMSProp's mean squared gradients.
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


def a2c(config: A2CConfig, spec: EnvSpec) -> Algorithm:
    """Return A2C for the spaces of `spec`."""
    net = actor_critic(spec, config.hidden, config.network)
    actor = Actor(spec, net, config.normalize_obs and not spec.is_image)
    return Algorithm(
        name="a2c",
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


def init(config: A2CConfig, actor: Actor, seed: int) -> A2CState:
    """Return the state before the first update, as NumPy arrays."""
    params = stochastic_policy.first_params(actor, seed, config.initial_log_std)
    running_return: Any = np.zeros(config.num_envs, np.float32)
    updates: Any = np.zeros((), np.int32)
    return A2CState(
        params,
        optax.ScaleByRmsState(jax.tree.map(np.ones_like, params)),
        statistics.empty(stochastic_policy.observed_shape(actor.spec)),
        statistics.empty(()),
        running_return,
        updates,
    )


def update(
    config: A2CConfig, actor: Actor, state: A2CState, batch: Transition, key: PRNGKeyArray
) -> tuple[A2CState, Metrics]:
    """Return the state after one gradient step on the batch (axes T, N), and metrics.

    Invalid rows change nothing.
    """
    del key
    batch = blank_invalid(batch)
    if config.normalize_rewards:
        batch, state = normalize_rewards(config.discount, state, batch)
    rows = prepare(actor, state, batch, partial(estimate, config))
    gradient, measured = jax.grad(loss, argnums=2, has_aux=True)(config, actor, state.params, rows)
    gradient, norm = clip_by_global_norm(gradient, config.max_grad_norm)
    direction, optimizer = rmsprop(config, gradient, state.optimizer)
    progress = state.updates / config.updates
    learning_rate = linear(config.learning_rate, config.learning_rate_end, progress)

    def descend(param: Array, direction: Array) -> Array:
        return param - learning_rate * direction

    params = jax.tree.map(descend, state.params, direction)
    metrics = rollout_metrics(actor.spec, batch, rows, config.discount) | measured
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
    metrics |= {
        "grad_norm": norm,
        "learning_rate": learning_rate,
        "update_ratio": update_ratio(state.params, params),
    }
    if actor.normalize_obs:
        state = state._replace(obs_statistics=observe(state.obs_statistics, batch))
    return state._replace(params=params, optimizer=optimizer, updates=state.updates + 1), metrics


def estimate(config: A2CConfig, *stream: Array) -> tuple[Float[Array, " T"], Float[Array, " T"]]:
    """Return A and the value's targets G = A + V of one environment's stream.

    With λ = 1, G is the n-step return to the end of the rollout or episode, and A is G - V.
    """
    advantages = gae(*stream, discount=config.discount, gae_lambda=config.gae_lambda)
    return advantages, advantages + stream[1]


def loss(
    config: A2CConfig, actor: Actor, params: Params, rows: Rows
) -> tuple[Float[Array, ""], Metrics]:
    """Return L_policy + c₁ L_value - c₂ H over the valid rows (arXiv:1602.01783, section 4)."""
    policy, value = policy_and_value(actor, params, rows.inputs)
    log_prob = policy.log_prob(rows.action)
    advantage = rows.advantage
    if config.normalize_advantage:
        advantage = standardize(advantage, rows.valid)
    policy_loss = masked_mean(policy_gradient(log_prob, advantage), rows.valid)
    value_loss = masked_mean(squared_error(value, rows.target), rows.valid)
    entropy = masked_mean(policy.entropy(), rows.valid)
    total = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    distance = jnp.abs(jnp.exp(log_prob - rows.log_prob) - 1.0)
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "first_ratio_error": jnp.where(rows.valid, distance, 0.0).max(),
    }


def rmsprop(
    config: A2CConfig, gradient: Params, optimizer: optax.ScaleByRmsState
) -> tuple[Params, optax.ScaleByRmsState]:
    """Return RMSProp's direction g / √(v + ε) after v ← α v + (1 - α) g², with v = 1 at first.

    A2C was published with TensorFlow's RMSProp, which has ε inside the root and starts from v = 1.
    With ε outside or v = 0, the first steps are many times larger.
    """
    rms: Any = optax.scale_by_rms(config.rms_decay, config.rms_epsilon, initial_scale=1.0)
    return rms.update(gradient, optimizer)
