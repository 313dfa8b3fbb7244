"""Soft actor-critic for discrete actions: what `sac` builds for discrete action spaces.

Source: Christodoulou 2019, arXiv:1910.07207, eqs. 10-12 and algorithm 1. Expectations over actions
are exact sums, so no action is sampled in the losses:

    V(s') = Σ_a π_θ(a|s') (min_k Q_φk⁻(s', a) - α log π_θ(a|s'))
    G = r + γ (1 - terminated) V(s')
    L_Q(φ) = Σ_k mean ½ (Q_φk(s, a) - G)²
    L_π(θ) = mean Σ_a π_θ(a|s) (α log π_θ(a|s) - min_k Q_φk(s, a))
    L_α = log α (H - H̄),   H = -mean Σ_a π_θ(a|s) log π_θ(a|s),   H̄ = 0.98 log |A|
    φ⁻ ← φ⁻ + τ (φ - φ⁻)

Departures from the paper:
  * log α instead of α in the temperature loss, as for continuous actions;
  * φ⁻ moves after every gradient step, instead of a copy every 8000;
  * minibatches of 256, U gradient steps after T env steps;
  * a truncated step bootstraps;
  * the first layer on images takes non-overlapping patches, unless `network=nature`;
  * evaluation takes the most probable action; from pixels it samples.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts.critics import critic_metrics, sum_of_errors
from backflip.algorithms.parts.identities import largest, rows_to_check
from backflip.algorithms.parts.invalid_rows import blank
from backflip.algorithms.parts.replay_settings import refuse_unworkable, replay_plan
from backflip.algorithms.parts.reward_metrics import reward_metrics
from backflip.algorithms.parts.sac_step import SACState, first_state, sac_step
from backflip.algorithms.parts.saved_policy import saved_policy, with_saved_policy
from backflip.core.distributions import Categorical
from backflip.core.gradients import update_ratio
from backflip.core.identities import bellman_errors
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.statistics import masked_mean
from backflip.core.targets import bellman_target
from backflip.core.types import Transition
from backflip.networks.layers import Params
from backflip.networks.q_network import QNetwork, q_network
from runshelf.errors import UsageError

Critics = list[Params]


class Networks(NamedTuple):
    """The network architecture, which policy and critics share, and facts about the spaces.

    Attributes:
        net: one output for each action: a logit or a value.
        actions: number of actions.
        pixels: observations are images.
    """

    net: QNetwork
    actions: int
    pixels: bool


def discrete_sac(config: SACConfig, spec: EnvSpec) -> Algorithm:
    """Return SAC for the discrete actions of `spec`.

    Raises:
        UsageError: actions are continuous, or the settings are invalid.
    """
    if not isinstance(spec.action, Discrete):
        raise UsageError(f"actions of `{spec.id}` are not discrete; use sac for them")
    refuse_unworkable(config, spec)
    net = q_network(spec, spec.action.n, config.hidden, pixels=config.network)
    networks = Networks(net, spec.action.n, spec.is_image)
    return Algorithm(
        name="sac",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, networks),
        act=partial(act, networks),
        evaluation_action=partial(evaluation_action, networks),
        update=partial(update, config, networks),
        policy=saved_policy,
        with_policy=with_saved_policy,
        replay=replay_plan(config),
        assess=partial(assess, networks),
        sample=partial(sample, networks),
    )


def init(config: SACConfig, networks: Networks, seed: int) -> SACState:
    """Return the state before the first update, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    actor = networks.net.init(rng)
    critics = [networks.net.init(rng) for _ in range(2)]
    return first_state(config, actor, critics)


def policy(networks: Networks, state: SACState, obs: Any) -> Categorical:
    """Return π_θ(·|s) of N observations."""
    return Categorical(networks.net.apply(state.actor, networks.net.preprocess(obs)))


def act(
    networks: Networks, state: SACState, obs: Any, key: PRNGKeyArray
) -> tuple[Int[Array, " N"], tuple[()]]:
    """Draw an action for each of N observations."""
    return policy(networks, state, obs).sample(key), ()


def sample(networks: Networks, state: SACState, obs: Any, key: PRNGKeyArray) -> Int[Array, " N"]:
    """Draw an action for each of N observations."""
    return act(networks, state, obs, key)[0]


def evaluation_action(
    networks: Networks, state: SACState, obs: Any, key: PRNGKeyArray
) -> Int[Array, " N"]:
    """Return the most probable action for each of N observations; from pixels, a sample."""
    if networks.pixels:
        return sample(networks, state, obs, key)
    return policy(networks, state, obs).mode()


def assess(networks: Networks, state: SACState, obs: Any) -> dict[str, Float[Array, " N"]]:
    """Return Σ_a π(a|s) min_k Q_k(s, a) and the entropy of π(·|s) for each of N observations."""
    chosen = policy(networks, state, obs)
    values = all_values(networks.net, state.critics, networks.net.preprocess(obs)).min(0)
    value = (jax.nn.softmax(chosen.logits) * values).sum(-1)
    return {"value": value, "entropy": chosen.entropy()}


def update(
    config: SACConfig,
    networks: Networks,
    state: SACState,
    batch: Transition,
    key: PRNGKeyArray,
) -> tuple[SACState, Metrics]:
    """Return the state after a gradient step on each of U minibatches (axes U, B), and metrics.

    Invalid rows do not enter the losses.
    """
    del key
    batch = jax.tree.map(partial(blank, valid=batch.valid), batch)
    after, (measured, values, goals) = jax.lax.scan(partial(step, config, networks), state, batch)
    metrics = jax.tree.map(jnp.mean, measured) | critic_metrics(values, goals, batch.valid)
    metrics["entropy_max"] = jnp.log(float(networks.actions))
    metrics |= reward_metrics(batch.reward, batch.valid)
    metrics["target_update_ratio"] = update_ratio(state.target_critics, after.target_critics)
    metrics["target_error_max"] = target_error(networks.net, state, batch, goals)
    moved = (state.actor, state.critics), (after.actor, after.critics)
    return after, metrics | {"update_ratio": update_ratio(*moved)}


def step(
    config: SACConfig, networks: Networks, state: SACState, rows: Transition
) -> tuple[SACState, tuple[Metrics, Float[Array, "2 B"], Float[Array, " B"]]]:
    """Return the state after one gradient step of all networks and α, metrics, Q_k(s, a) and G."""
    net = networks.net
    rows = rows._replace(obs=net.preprocess(rows.obs), next_obs=net.preprocess(rows.next_obs))
    temperature = jnp.exp(state.log_temperature)
    goal = targets(net, state.actor, state.target_critics, temperature, rows)

    def loss_of_critics(critics: Critics) -> tuple[Float[Array, ""], Float[Array, "2 B"]]:
        return critic_loss(net, critics, rows, goal)

    def loss_of_actor(actor: Params, critics: Critics) -> tuple[Array, Array]:
        return actor_loss(net, actor, critics, temperature, rows)

    target_entropy = config.target_entropy_scale * float(np.log(networks.actions))
    after, measured, values = sac_step(
        config, state, loss_of_critics, loss_of_actor, target_entropy
    )
    return after, (measured, values, goal)


def all_values(net: QNetwork, critics: Critics, inputs: Any) -> Float[Array, "2 B A"]:
    """Return Q_k(s, ·) of both critics."""
    return jnp.stack([net.apply(critic, inputs) for critic in critics])


def targets(
    net: QNetwork,
    actor: Params,
    target_critics: Critics,
    temperature: Float[Array, ""],
    rows: Transition,
) -> Float[Array, " B"]:
    """Return G = r + γ (1 - terminated) Σ_a π(a|s') (min_k Q_φk⁻(s', a) - α log π(a|s'))."""
    soft = soft_value(net, actor, target_critics, temperature, rows.next_obs)
    return bellman_target(rows.reward, rows.extra.discount, rows.terminated, soft)


def soft_value(
    net: QNetwork, actor: Params, critics: Critics, temperature: Float[Array, ""], inputs: Any
) -> Float[Array, " B"]:
    """Return V(s) = Σ_a π(a|s) (min_k Q_k(s, a) - α log π(a|s))."""
    log_prob = jax.nn.log_softmax(net.apply(actor, inputs))
    value = all_values(net, critics, inputs).min(0)
    return (jnp.exp(log_prob) * (value - temperature * log_prob)).sum(-1)


def target_error(
    net: QNetwork, state: SACState, batch: Transition, goals: Float[Array, "U B"]
) -> Float[Array, ""]:
    """Return the largest error of G in some rows of the first minibatch, computed once more."""
    rows = rows_to_check(batch)
    temperature, inputs = jnp.exp(state.log_temperature), net.preprocess(rows.next_obs)
    value = soft_value(net, state.actor, state.target_critics, temperature, inputs)
    errors = bellman_errors(
        rows.reward, rows.extra.discount, rows.terminated, value, goals[0, : len(rows.reward)]
    )
    return largest(errors, rows.valid)


def critic_loss(
    net: QNetwork, critics: Critics, rows: Transition, target: Float[Array, " B"]
) -> tuple[Float[Array, ""], Float[Array, "2 B"]]:
    """Return Σ_k mean ½ (Q_k(s, a) - target)² over the valid rows, and the Q_k(s, a)."""
    every = all_values(net, critics, rows.obs)
    chosen = jax.nn.one_hot(rows.action, every.shape[-1])
    values = (every * chosen[None]).sum(-1)
    return sum_of_errors(values, target, rows.valid), values


def actor_loss(
    net: QNetwork, actor: Params, critics: Critics, temperature: Float[Array, ""], rows: Transition
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return mean Σ_a π(a|s) (α log π(a|s) - min_k Q_k(s, a)) over the valid rows, and H.

    Differentiate with respect to `actor` only.
    """
    logits = net.apply(actor, rows.obs)
    log_prob = jax.nn.log_softmax(logits)
    value = all_values(net, critics, rows.obs).min(0)
    each = (jnp.exp(log_prob) * (temperature * log_prob - value)).sum(-1)
    return masked_mean(each, rows.valid), masked_mean(Categorical(logits).entropy(), rows.valid)
