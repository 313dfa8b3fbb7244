"""Soft actor-critic: a stochastic policy that maximises reward and entropy.

Sources: Haarnoja et al. 2018, arXiv:1801.01290, eqs. 5-13 and appendix C; the learned temperature
and no value network: arXiv:1812.05905, algorithm 1 and eq. 18.

    ã' ~ π_θ(·|s'),   G = r + γ (1 - terminated) (min_k Q_φk⁻(s', ã') - α log π_θ(ã'|s'))
    L_Q(φ) = Σ_k mean ½ (Q_φk(s, a) - G)²
    ã ~ π_θ(·|s),     L_π(θ) = mean (α log π_θ(ã|s) - min_k Q_φk(s, ã))
    L_α = log α (H - H̄),   H = -mean log π_θ(ã|s)
    φ⁻ ← φ⁻ + τ (φ - φ⁻)

Policy and critics see actions scaled to [-1, 1]; the environment gets its own units. So log π is a
density over scaled actions, and the target entropy H̄ = -|A| does not depend on the bounds.

Departures from the papers:
  * log σ is clipped to [-20, 2] (as in the authors' code);
  * uniformly random actions before learning starts (as in the authors' code);
  * log α instead of α in the temperature loss (as in the authors' code);
  * U gradient steps after T env steps, instead of one after each;
  * a truncated step bootstraps;
  * discrete actions: `backflip.algorithms.discrete_sac`.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.discrete_sac import discrete_sac
from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts.action_scale import ActionScale, action_scale, rows_in_units, to_env
from backflip.algorithms.parts.critics import (
    Critics,
    action_values,
    critic_loss,
    critic_metrics,
    first_critics,
)
from backflip.algorithms.parts.identities import largest, rows_to_check
from backflip.algorithms.parts.replay_settings import refuse_unworkable, replay_plan
from backflip.algorithms.parts.reward_metrics import reward_metrics
from backflip.algorithms.parts.sac_step import SACState, first_state, sac_step
from backflip.algorithms.parts.saved_policy import saved_policy, with_saved_policy
from backflip.core.distributions import TanhNormal
from backflip.core.gradients import update_ratio
from backflip.core.identities import bellman_errors
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.statistics import masked_mean
from backflip.core.targets import bellman_target
from backflip.core.types import Transition
from backflip.networks.layers import Params
from backflip.networks.mlp import apply_mlp, mlp
from backflip.networks.own import refuse_own

LOG_STD_BOUNDS = (-20.0, 2.0)
DRAWS = 32  # actions sampled in `assess`


def sac(config: SACConfig, spec: EnvSpec) -> Algorithm:
    """Return SAC for the spaces of `spec`, discrete actions included.

    Raises:
        UsageError: SAC does not support the spaces, or the settings are invalid.
    """
    if isinstance(spec.action, Discrete):
        return discrete_sac(config, spec)
    refuse_own("sac", config.network)
    scale = action_scale("sac", spec)
    refuse_unworkable(config, spec)
    return Algorithm(
        name="sac",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, spec, scale),
        act=partial(act, scale),
        evaluation_action=partial(evaluation_action, scale),
        update=partial(update, config, scale),
        policy=saved_policy,
        with_policy=with_saved_policy,
        replay=replay_plan(config),
        assess=assess,
        sample=partial(sample, scale),
    )


def init(config: SACConfig, spec: EnvSpec, scale: ActionScale, seed: int) -> SACState:
    """Return the state before the first update, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    actor = mlp(rng, (spec.observation.shape[0], *config.hidden, 2 * scale.dimensions))
    critics = first_critics(rng, spec, scale.dimensions, config.hidden, 2)
    return first_state(config, actor, critics)


def policy(actor: list[Params], obs: Float[Array, "B inputs"]) -> TanhNormal:
    """Return π_θ(·|s) over actions in [-1, 1]."""
    mean, log_std = jnp.split(apply_mlp(actor, obs), 2, -1)
    return TanhNormal(mean, jnp.clip(log_std, *LOG_STD_BOUNDS))


def act(
    scale: ActionScale, state: SACState, obs: Any, key: PRNGKeyArray
) -> tuple[Float[Array, "N A"], tuple[()]]:
    """Draw an action for each of N observations."""
    return to_env(scale, policy(state.actor, obs).sample(key)), ()


def sample(scale: ActionScale, state: SACState, obs: Any, key: PRNGKeyArray) -> Float[Array, "N A"]:
    """Draw an action for each of N observations."""
    return act(scale, state, obs, key)[0]


def evaluation_action(
    scale: ActionScale, state: SACState, obs: Any, key: PRNGKeyArray
) -> Float[Array, "N A"]:
    """Return tanh of the policy's mean, scaled to the bounds, for each of N observations."""
    del key
    return to_env(scale, policy(state.actor, obs).mode())


def assess(state: SACState, obs: Float[Array, "N inputs"]) -> dict[str, Float[Array, " N"]]:
    """Return E[min_k Q_k(s, a)] and the entropy -E[log π(a|s)] of each of N observations.

    Both are means over 32 samples. The noise is the same for every observation and every call.
    The entropy is that of actions in [-1, 1].
    """
    dimensions = state.actor[-1]["b"].shape[-1] // 2
    noise = jax.random.normal(jax.random.key(0), (DRAWS, dimensions))

    def of_one(noise: Float[Array, " A"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        same = jnp.broadcast_to(noise, (obs.shape[0], dimensions))
        unit, log_prob = policy(state.actor, obs).transform(same)
        return action_values(state.critics, obs, unit).min(0), -log_prob

    value, surprise = jax.vmap(of_one)(noise)
    return {"value": value.mean(0), "entropy": surprise.mean(0)}


def update(
    config: SACConfig, scale: ActionScale, state: SACState, batch: Transition, key: PRNGKeyArray
) -> tuple[SACState, Metrics]:
    """Return the state after a gradient step on each of U minibatches (axes U, B), and metrics.

    Invalid rows do not enter the losses.
    """
    batch = rows_in_units(scale, batch)
    updates, *rest = batch.action.shape
    noise = jax.random.normal(key, (updates, 2, *rest))  # one draw: many small ones are slow
    after, (measured, values, goals) = jax.lax.scan(partial(step, config), state, (batch, noise))
    metrics = jax.tree.map(jnp.mean, measured) | critic_metrics(values, goals, batch.valid)
    metrics |= reward_metrics(batch.reward, batch.valid)
    metrics["target_update_ratio"] = update_ratio(state.target_critics, after.target_critics)
    metrics["target_error_max"] = target_error(state, batch, noise[0, 0], goals)
    moved = (state.actor, state.critics), (after.actor, after.critics)
    return after, metrics | {"update_ratio": update_ratio(*moved)}


def step(
    config: SACConfig, state: SACState, minibatch: tuple[Transition, Float[Array, "2 B A"]]
) -> tuple[SACState, tuple[Metrics, Float[Array, "2 B"], Float[Array, " B"]]]:
    """Return the state after one gradient step of all networks and α, metrics, Q_k(s, a) and G."""
    rows, noise = minibatch
    temperature = jnp.exp(state.log_temperature)
    goal = targets(state.actor, state.target_critics, temperature, rows, noise[0])

    def loss_of_critics(critics: Critics) -> tuple[Float[Array, ""], Float[Array, "2 B"]]:
        return critic_loss(critics, rows, goal)

    def loss_of_actor(actor: list[Params], critics: Critics) -> tuple[Array, Array]:
        return actor_loss(actor, critics, temperature, rows, noise[1])

    target_entropy = config.target_entropy_per_dimension * noise.shape[-1]
    after, measured, values = sac_step(
        config, state, loss_of_critics, loss_of_actor, target_entropy
    )
    return after, (measured, values, goal)


def targets(
    actor: list[Params],
    target_critics: Critics,
    temperature: Float[Array, ""],
    rows: Transition,
    noise: Float[Array, "B A"],
) -> Float[Array, " B"]:
    """Return G = r + γ (1 - terminated) (min_k Q_φk⁻(s', ã') - α log π_θ(ã'|s'))."""
    following, log_prob = policy(actor, rows.next_obs).transform(noise)
    value = action_values(target_critics, rows.next_obs, following).min(0)
    soft = value - temperature * log_prob
    return bellman_target(rows.reward, rows.extra.discount, rows.terminated, soft)


def target_error(
    state: SACState, batch: Transition, noise: Float[Array, "B A"], goals: Float[Array, "U B"]
) -> Float[Array, ""]:
    """Return the largest error of G in some rows of the first minibatch, computed once more."""
    rows = rows_to_check(batch)
    count = len(rows.reward)
    action, log_prob = policy(state.actor, rows.next_obs).transform(noise[:count])
    value = action_values(state.target_critics, rows.next_obs, action).min(0)
    soft = value - jnp.exp(state.log_temperature) * log_prob
    errors = bellman_errors(
        rows.reward, rows.extra.discount, rows.terminated, soft, goals[0, :count]
    )
    return largest(errors, rows.valid)


def actor_loss(
    actor: list[Params],
    critics: Critics,
    temperature: Float[Array, ""],
    rows: Transition,
    noise: Float[Array, "B A"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return mean (α log π(ã|s) - min_k Q_k(s, ã)) over the valid rows, and the entropy H.

    ã = tanh(μ + σ noise), so the gradient flows through the action. Differentiate with respect to
    `actor` only.
    """
    unit, log_prob = policy(actor, rows.obs).transform(noise)
    value = action_values(critics, rows.obs, unit).min(0)
    return (
        masked_mean(temperature * log_prob - value, rows.valid),
        -masked_mean(log_prob, rows.valid),
    )
