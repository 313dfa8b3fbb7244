"""The cross-entropy method: a search for a policy's parameters that looks at returns alone.

Source: Rubinstein 1999, "The cross-entropy method for combinatorial and continuous optimization";
for policies, with noise that keeps the search open: Szita & Lőrincz 2006, "Learning Tetris using
the noisy cross-entropy method", section 3.

    θ_n ~ N(μ, diag σ²)    n = 1..N;   the elite E are the ρ N members with the largest returns
    μ   ← mean_E θ_n,      σ² ← mean_E (θ_n - μ)² + Z_k,   Z_k = Z_0 max(0, 1 - k / K)

Each of the N environments is a member of the population, and each rollout a generation: an
episode by each member, or several. No gradient, no value function, no discount.

Departures from the papers:
  * an episode that the rollout cuts counts as far as it went;
  * Z goes along a line from a share of the first variance to 0 by a share of the updates.
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
from backflip.algorithms.parts.masking import blank_invalid
from backflip.algorithms.parts.rewards import reward_metrics
from backflip.core.gradients import update_ratio
from backflip.core.schedules import linear
from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.core.types import Transition
from backflip.networks.single_head import SingleHead, action_outputs, single_head
from runshelf.errors import UsageError


class CEMState(NamedTuple):
    """Everything CEM carries from one generation to the next.

    Attributes:
        mean: μ of the P parameters.
        std: σ of each.
        members: the parameters of the generation that acts next.
        updates: number of generations done.
    """

    mean: Float[Array, " P"]
    std: Float[Array, " P"]
    members: Float[Array, "N P"]
    updates: Int[Array, ""]


class ActingPart(NamedTuple):
    """What acting needs of a state when learning is over: μ."""

    mean: Float[Array, " P"]


class Policy(NamedTuple):
    """A deterministic policy whose parameters are one vector.

    Attributes:
        spec: the environment's spaces.
        net: its network.
        size: P, how many parameters it has.
        unflatten: (P,) -> the network's parameters.
    """

    spec: EnvSpec
    net: SingleHead
    size: int
    unflatten: Any


def cem(config: CEMConfig, spec: EnvSpec) -> Algorithm:
    """Return CEM for the spaces of `spec`.

    Raises:
        UsageError: observations are images, or there is nobody to choose an elite from.
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
        policy=acting_part,
        with_policy=with_acting_part,
        restarts=True,
    )


def make_policy(config: CEMConfig, spec: EnvSpec) -> Policy:
    """Return the policy that CEM searches the parameters of."""
    if spec.is_pixels:
        raise UsageError(
            f"`cem` searches too few parameters for images, and `{spec.id}` shows images of "
            f"{'x'.join(map(str, spec.observation.shape))}"
        )
    net = single_head(spec, action_outputs(spec), config.hidden, 1.0)
    flat, unflatten = ravel_pytree(net.init(np.random.default_rng(0)))
    return Policy(spec, net, flat.size, unflatten)


def init(config: CEMConfig, policy: Policy, seed: int) -> CEMState:
    """Return the state before the first generation acts, as NumPy arrays."""
    shape = (config.num_envs, policy.size)
    drawn = np.random.default_rng(seed).normal(0.0, config.initial_std, shape)
    mean: Any = np.zeros(policy.size, np.float32)
    std: Any = np.full(policy.size, config.initial_std, np.float32)
    members: Any = drawn.astype(np.float32)
    updates: Any = np.zeros((), np.int32)
    return CEMState(mean, std, members, updates)


def acting_part(state: CEMState) -> ActingPart:
    """Return what acting needs when learning is over."""
    return ActingPart(state.mean)


def with_acting_part(state: CEMState, part: ActingPart) -> CEMState:
    """Return the state with another policy in it."""
    return state._replace(mean=part.mean)


def act(policy: Policy, state: CEMState, obs: Any, key: PRNGKeyArray) -> tuple[Any, tuple[()]]:
    """Return what each of N members does on its observation."""
    del key

    def of_one(member: Float[Array, " P"], obs: Array) -> Array:
        return actions(policy, member, obs[None])[0]

    return jax.vmap(of_one)(state.members, obs), ()


def evaluation_action(policy: Policy, state: CEMState, obs: Any, key: PRNGKeyArray) -> Any:
    """Return what the policy with parameters μ does; nothing of it is drawn."""
    del key
    return actions(policy, state.mean, obs)


def actions(policy: Policy, parameters: Float[Array, " P"], obs: Array) -> Array:
    """Return what one member does on B observations.

    Discrete: the action with the largest output. Continuous: tanh of the output, scaled to the
    bounds; the output itself where there are none.
    """
    outputs = policy.net.apply(policy.unflatten(parameters), policy.net.see(obs))
    if isinstance(policy.spec.action, Discrete):
        return jnp.argmax(outputs, -1)
    return _within_bounds(policy.spec.action, outputs)


def _within_bounds(box: Box, outputs: Float[Array, "B A"]) -> Float[Array, "B A"]:
    low = np.where(box.bounded, box.low, 0.0).astype(np.float32)[None]
    high = np.where(box.bounded, box.high, 0.0).astype(np.float32)[None]
    scaled = low + (high - low) * (jnp.tanh(outputs) + 1.0) / 2.0
    return jnp.where(box.bounded[None], scaled, outputs)


def update(
    config: CEMConfig, state: CEMState, batch: Transition, key: PRNGKeyArray
) -> tuple[CEMState, Metrics]:
    """Return the state with the next generation drawn, and what was measured of this one.

    The batch has axes (T, N). Rows that are not valid change nothing, whatever they hold.
    """
    score = fitness(blank_invalid(batch), config.episodes)
    progress = state.updates / config.updates / max(config.noise_fraction, 1e-6)
    noise = linear(config.noise * config.initial_std**2, 0.0, progress)
    mean, std = refit(state.members, score, config.elite, noise)
    members = mean[None] + std[None] * jax.random.normal(key, state.members.shape)
    metrics = _metrics(config, batch, score) | {
        "noise": noise,
        "parameter_std": std.mean(),
        "update_ratio": _update_ratio(state.mean, mean),
    }
    return CEMState(mean, std, members, state.updates + 1), metrics


def fitness(batch: Transition, episodes: int) -> Float[Array, " N"]:
    """Return what each member's first episodes paid, undiscounted: their sum over their number.

    What follows them in the rollout counts for nothing; an episode that the rollout's end cuts
    counts as far as it went. Invalid rows must hold zeros.
    """
    return jnp.where(_counts(batch, episodes), batch.reward, 0.0).sum(0) / episodes


def refit(
    members: Float[Array, "N P"],
    score: Float[Array, " N"],
    elite: int,
    noise: Float[Array, ""] | float,
) -> tuple[Float[Array, " P"], Float[Array, " P"]]:
    """Return μ and σ of the best members, `noise` added to σ²."""
    _, best = jax.lax.top_k(score, elite)
    chosen = members[best]
    mean = chosen.mean(0)
    variance = jnp.square(chosen - mean[None]).mean(0)
    return mean, jnp.sqrt(variance + noise)


def _counts(batch: Transition, episodes: int) -> Bool[Array, "T N"]:
    """Return which rows belong to the first episodes."""
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
    """Return ‖μ' - μ‖ / ‖μ‖; 1 in the first update, which starts from μ = 0."""
    known = jnp.any(before != 0)
    return jnp.where(known, update_ratio(jnp.where(known, before, 1.0), after), 1.0)
