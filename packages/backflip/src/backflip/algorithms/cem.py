"""The cross-entropy method: a search for policy parameters that uses returns only.

Source: Rubinstein 1999, "The cross-entropy method for combinatorial and continuous optimization";
for policies, with noise against premature convergence: Szita & Lőrincz 2006, "Learning Tetris using
the noisy cross-entropy method", section 3.

    θ_n ~ N(μ, diag σ²)    n = 1..N;   the elite E are the ρ N members with the largest returns
    μ   ← mean_E θ_n,      σ² ← mean_E (θ_n - μ)² + Z_k,   Z_k = Z_0 max(0, 1 - k / K)

Each of the N environments is one member of the population. Each rollout is one generation, in which
every member plays one or more episodes. No gradient, no value function, no discount.

Departures from the papers:
  * an episode cut by the end of the rollout counts with the reward so far;
  * Z decreases linearly to 0 over a fraction of the updates; Z_0 is a fraction of the initial
    variance.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.algorithms.parts.invalid_rows import blank_invalid
from backflip.algorithms.parts.reward_metrics import reward_metrics
from backflip.core.gradients import update_ratio
from backflip.core.schedules import linear
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.networks.single_head import SingleHead, action_outputs, single_head
from runshelf.errors import UsageError


class CEMState(NamedTuple):
    """Everything CEM carries from one generation to the next.

    Attributes:
        mean: μ of the P parameters.
        std: σ of each parameter.
        members: parameters of the generation that acts next.
        updates: number of generations done.
    """

    mean: Float[Array, " P"]
    std: Float[Array, " P"]
    members: Float[Array, "N P"]
    updates: Int[Array, ""]


class SavedPolicy(NamedTuple):
    """The part of a state that acts after training: μ."""

    mean: Float[Array, " P"]


class Policy(NamedTuple):
    """A deterministic policy whose parameters are one vector.

    Attributes:
        spec: the environment's spaces.
        net: the network.
        size: P, the number of parameters.
        unflatten: (P,) -> the network's parameters.
    """

    spec: EnvSpec
    net: SingleHead
    size: int
    unflatten: Any


def cem(config: CEMConfig, spec: EnvSpec) -> Algorithm:
    """Return CEM for the spaces of `spec`.

    Raises:
        UsageError: observations are images, or the settings give no elite.
    """
    if config.num_envs < 2 or not 0 < config.elite_fraction <= 1:
        raise UsageError(
            "`cem` needs at least 2 members (`num_envs`) and an `elite_fraction` above 0 and at "
            f"most 1, got {config.num_envs} and {config.elite_fraction}"
        )
    policy = make_policy(config, spec)
    return Algorithm(
        name="cem",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, policy),
        act=partial(act, policy),
        evaluation_action=partial(evaluation_action, policy),
        update=partial(update, config),
        policy=saved_policy,
        with_policy=with_saved_policy,
        restarts=True,
    )


def make_policy(config: CEMConfig, spec: EnvSpec) -> Policy:
    """Return the policy whose parameters CEM searches."""
    if spec.is_image:
        raise UsageError(
            f"`cem` searches too few parameters for images, and `{spec.id}` shows images of "
            f"{'x'.join(map(str, spec.observation.shape))}"
        )
    net = single_head(spec, action_outputs(spec), config.hidden, 1.0)
    flat, unflatten = ravel_pytree(net.init(np.random.default_rng(0)))
    return Policy(spec, net, flat.size, unflatten)


def init(config: CEMConfig, policy: Policy, seed: int) -> CEMState:
    """Return the state before the first generation, as NumPy arrays."""
    shape = (config.num_envs, policy.size)
    drawn = np.random.default_rng(seed).normal(0.0, config.initial_std, shape)
    mean: Any = np.zeros(policy.size, np.float32)
    std: Any = np.full(policy.size, config.initial_std, np.float32)
    members: Any = drawn.astype(np.float32)
    updates: Any = np.zeros((), np.int32)
    return CEMState(mean, std, members, updates)


def saved_policy(state: CEMState) -> SavedPolicy:
    """Return the part of the state that acts after training."""
    return SavedPolicy(state.mean)


def with_saved_policy(state: CEMState, part: SavedPolicy) -> CEMState:
    """Return the state with the mean μ of `part`."""
    return state._replace(mean=part.mean)


def act(policy: Policy, state: CEMState, obs: Any, key: PRNGKeyArray) -> tuple[Any, tuple[()]]:
    """Return the action of each of N members for its own observation."""
    del key

    def of_one(member: Float[Array, " P"], obs: Array) -> Array:
        return actions(policy, member, obs[None])[0]

    return jax.vmap(of_one)(state.members, obs), ()


def evaluation_action(policy: Policy, state: CEMState, obs: Any, key: PRNGKeyArray) -> Any:
    """Return the actions of the policy with parameters μ; deterministic."""
    del key
    return actions(policy, state.mean, obs)


def actions(policy: Policy, parameters: Float[Array, " P"], obs: Array) -> Array:
    """Return the actions of one member for B observations.

    Discrete: the action with the largest output. Continuous: tanh of the output, scaled to the
    bounds; dimensions without bounds use the output itself.
    """
    outputs = policy.net.apply(policy.unflatten(parameters), policy.net.preprocess(obs))
    if isinstance(policy.spec.action, Discrete):
        return jnp.argmax(outputs, -1)
    return _within_bounds(policy.spec.action, outputs)


def _within_bounds(box: Box, outputs: Float[Array, "B A"]) -> Float[Array, "B A"]:
    low = np.where(box.bounded, box.low, 0.0).astype(np.float32)[None]
    high = np.where(box.bounded, box.high, 0.0).astype(np.float32)[None]
    scaled = low + (high - low) * (jnp.tanh(outputs) + 1.0) / 2.0
    return jnp.where(box.bounded[None], scaled, outputs)


def added_variance(config: CEMConfig, state: CEMState) -> Float[Array, ""]:
    """Return Z, which falls linearly to 0 over `noise_fraction` of the updates."""
    if not config.noise_fraction:
        return jnp.zeros(())
    progress = state.updates / config.updates / config.noise_fraction
    return linear(config.noise * config.initial_std**2, 0.0, progress)


def update(
    config: CEMConfig, state: CEMState, batch: Transition, key: PRNGKeyArray
) -> tuple[CEMState, Metrics]:
    """Return the state with the next generation, and metrics of this generation.

    The batch has axes (T, N). Invalid rows change nothing.
    """
    score = fitness(blank_invalid(batch), config.episodes)
    noise = added_variance(config, state)
    mean, std = refit(state.members, score, config.elite, noise)
    members = mean[None] + std[None] * jax.random.normal(key, state.members.shape)
    metrics = _metrics(config, batch, score) | {
        "noise": noise,
        "parameter_std": std.mean(),
        "update_ratio": _update_ratio(state.mean, mean),
    }
    return CEMState(mean, std, members, state.updates + 1), metrics


def fitness(batch: Transition, episodes: int) -> Float[Array, " N"]:
    """Return each member's fitness: reward of its first `episodes` episodes / `episodes`.

    Undiscounted. Later env steps of the rollout are ignored. An episode cut by the end of the
    rollout counts with the reward so far. Invalid rows must hold zeros.
    """
    return jnp.where(_counts(batch, episodes), batch.reward, 0.0).sum(0) / episodes


def refit(
    members: Float[Array, "N P"],
    score: Float[Array, " N"],
    elite: int,
    noise: Float[Array, ""] | float,
) -> tuple[Float[Array, " P"], Float[Array, " P"]]:
    """Return μ and σ of the best `elite` members, with `noise` added to σ²."""
    _, best = jax.lax.top_k(score, elite)
    chosen = members[best]
    mean = chosen.mean(0)
    variance = jnp.square(chosen - mean[None]).mean(0)
    return mean, jnp.sqrt(variance + noise)


def _counts(batch: Transition, episodes: int) -> Bool[Array, "T N"]:
    """Return which rows belong to the first `episodes` episodes."""
    ended = ((batch.terminated | batch.truncated) & batch.valid).astype(jnp.int32)
    earlier = jnp.cumsum(ended, 0) - ended
    return (earlier < episodes) & batch.valid


def _metrics(config: CEMConfig, batch: Transition, score: Float[Array, " N"]) -> Metrics:
    valid = batch.valid
    ended = ((batch.terminated | batch.truncated) & valid).sum(0)
    used = _counts(batch, config.episodes).sum() / jnp.maximum(valid.sum(), 1)
    return reward_metrics(batch.reward, valid) | {
        "fitness_mean": score.mean(),
        "fitness_std": score.std(),
        "fitness_max": score.max(),
        "fitness_elite": jax.lax.top_k(score, config.elite)[0].mean(),
        "finished_share": (ended >= config.episodes).mean(dtype=jnp.float32),
        "used_share": used,
    }


def _update_ratio(before: Float[Array, " P"], after: Float[Array, " P"]) -> Float[Array, ""]:
    """Return ‖μ' - μ‖ / ‖μ‖; 1 in the first update, where μ = 0."""
    known = jnp.any(before != 0)
    return jnp.where(known, update_ratio(jnp.where(known, before, 1.0), after), 1.0)
