"""Advantage actor-critic: one gradient step on every few env steps of N environments.

Source: Mnih et al. 2016, arXiv:1602.01783, algorithm S3 and section 4: the n-step return, the
gradient of the policy with an entropy term, RMSProp. The synchronous form with all environments in
one batch is that of OpenAI's baselines ("A2C").

    G_t = Σ_{k<m} γ^k r_{t+k+1} + γ^m V(s_{t+m})    to the end of the rollout or episode
    L   = mean [-log π(a|s) (G - V(s)) + c₁ ½ (V(s) - G)² - c₂ H(π(·|s))]

Departures from the paper:
  * environments step together and make one gradient, instead of each its own in its own time;
  * a truncated step bootstraps from the value of the true successor;
  * the gradient's global norm is clipped; `gae_lambda` < 1 gives generalised advantages;
  * policy and value have networks of their own on vectors, and none is recurrent;
  * pictures go through patches that do not overlap, unless `network=nature` says otherwise;
  * observations and rewards can be scaled by running statistics, advantages be normalised.
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
from backflip.algorithms.parts import actor as acting
from backflip.algorithms.parts.actor import Actor, policy_and_value
from backflip.algorithms.parts.masking import blank_invalid
from backflip.algorithms.parts.measures import rollout_metrics
from backflip.algorithms.parts.rows import Rows, prepare
from backflip.algorithms.parts.scaling import normalize_rewards, observe
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
        params: of the network, and `log_std` (A,) for continuous actions.
        optimizer: RMSProp's mean squared gradients.
        obs_statistics: of the observations, over all data since the start.
        return_statistics: of the discounted return, over all data since the start.
        running_return: (N,) the discounted return of each environment's episode so far.
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
    actor = Actor(spec, net, config.normalize_obs and not spec.is_pixels)
    return Algorithm(
        name="a2c",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, actor),
        act=partial(acting.act, actor),
        evaluation_action=partial(acting.evaluation_action, actor),
        update=partial(update, config, actor),
        policy=acting.acting_part,
        with_policy=acting.with_acting_part,
        assess=partial(acting.assess, actor),
    )


def init(config: A2CConfig, actor: Actor, seed: int) -> A2CState:
    """Return the state before the first update, as NumPy arrays."""
    params = acting.first_params(actor, seed, config.initial_log_std)
    running_return: Any = np.zeros(config.num_envs, np.float32)
    updates: Any = np.zeros((), np.int32)
    return A2CState(
        params,
        optax.ScaleByRmsState(jax.tree.map(np.ones_like, params)),
        statistics.empty(acting.observed_shape(actor.spec)),
        statistics.empty(()),
        running_return,
        updates,
    )


def update(
    config: A2CConfig, actor: Actor, state: A2CState, batch: Transition, key: PRNGKeyArray
) -> tuple[A2CState, Metrics]:
    """Return the state after one gradient step on the batch (axes T, N), and what was measured.

    Rows that are not valid change nothing, whatever they hold.
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
    policy, value = policy_and_value(actor, params, rows.seen)
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

    ε inside the root and a first v of 1 are TensorFlow's way, with which A2C was published: with
    the other way, the first steps are many times longer.
    """
    rms: Any = optax.scale_by_rms(config.rms_decay, config.rms_epsilon, initial_scale=1.0)
    return rms.update(gradient, optimizer)
