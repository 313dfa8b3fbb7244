"""Proximal policy optimisation with the clipped surrogate objective.

Source: Schulman et al. 2017, arXiv:1707.06347, eqs. 7, 9 and 11, and the implementation details
collected by Huang et al. 2022 ("The 37 implementation details of PPO").

Departures from the paper:
  * the advantage estimator is the recursion of arXiv:1506.02438, eq. 16 (eq. 11's exponent is a
    misprint), and a truncated step bootstraps from the value of the true successor;
  * observations and rewards are scaled by running statistics (rewards are never shifted);
  * advantages are normalised per minibatch, gradients clipped by their global norm;
  * no adaptive KL penalty; the value loss is not clipped.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from backflip.algorithms.interface import Algorithm, Metrics
from backflip.core import statistics
from backflip.core.distributions import Categorical, DiagonalNormal
from backflip.core.losses import approximate_kl, clipped_surrogate, squared_error
from backflip.core.returns import gae, reward_to_go
from backflip.core.shuffle import shuffle
from backflip.core.spec import Discrete, EnvSpec
from backflip.core.statistics import RunningStatistics, masked_mean, masked_std
from backflip.core.types import Transition
from backflip.networks import ActorCritic, Params, actor_critic


@dataclass(frozen=True)
class PPOConfig:
    """Settings of PPO; the defaults suit classic control.

    Attributes:
        env_steps: env steps of one seed in all; the schedules end there.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each between two updates.
        epochs: passes over each batch.
        minibatches: gradient steps in one pass; divides T N.
        learning_rate: Adam's step size at the start.
        learning_rate_end: the same at the end, reached linearly.
        discount: γ per env step.
        decay: λ of the advantage estimator.
        clip: ε of the surrogate at the start.
        clip_end: the same at the end, reached linearly.
        entropy_bonus: weight of the policy's entropy in the objective at the start.
        entropy_bonus_end: the same at the end, reached linearly.
        value_weight: weight of the value loss.
        max_grad_norm: gradients longer than this are shortened to it.
        hidden: widths of the hidden layers, for vector observations.
        initial_log_std: log σ of a continuous policy at the start.
        normalize_obs: scale vector observations by running mean and standard deviation.
        scale_rewards: divide rewards by the running standard deviation of the discounted return.
    """

    env_steps: int = 100_000
    num_envs: int = 8
    rollout_length: int = 32
    epochs: int = 20
    minibatches: int = 1
    learning_rate: float = 1e-3
    learning_rate_end: float = 0.0
    discount: float = 0.98
    decay: float = 0.8
    clip: float = 0.2
    clip_end: float = 0.0
    entropy_bonus: float = 0.0
    entropy_bonus_end: float = 0.0
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    hidden: tuple[int, ...] = (64, 64)
    initial_log_std: float = 0.0
    normalize_obs: bool = False
    scale_rewards: bool = False

    @property
    def updates(self) -> int:
        """Updates of one seed in all; the last batch may go a little beyond `env_steps`."""
        return -(-self.env_steps // (self.num_envs * self.rollout_length))


class PPOState(NamedTuple):
    """Everything PPO carries from one update to the next.

    Attributes:
        params: of the network, and `log_std` (A,) for continuous actions.
        optimizer: Adam's moments.
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


class ActingPart(NamedTuple):
    """What acting needs of a `PPOState`; its fields are that one's."""

    params: Params
    obs_statistics: RunningStatistics


class Rows(NamedTuple):
    """The batch as the loss sees it: B = T N rows."""

    seen: Any
    action: Any
    log_prob: Float[Array, " B"]
    advantage: Float[Array, " B"]
    target: Float[Array, " B"]
    valid: Bool[Array, " B"]


class Remembered(NamedTuple):
    """What acting leaves for the update: log π_old(a|s) and V(s)."""

    log_prob: Float[Array, " N"]
    value: Float[Array, " N"]


def ppo(config: PPOConfig, spec: EnvSpec) -> Algorithm:
    """Return PPO for the spaces of `spec`."""
    net = actor_critic(spec, config.hidden)
    return Algorithm(
        name="ppo",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, spec, net),
        act=partial(act, config, spec, net),
        act_greedily=partial(act_greedily, config, spec, net),
        exploit=partial(exploit, config, spec, net),
        update=partial(update, config, spec, net),
        policy=acting_part,
        with_policy=with_acting_part,
    )


def init(config: PPOConfig, spec: EnvSpec, net: ActorCritic, seed: int) -> PPOState:
    """Return the state before the first update, as NumPy arrays."""
    params = net.init(np.random.default_rng(seed))
    if not isinstance(spec.action, Discrete):
        params["log_std"] = np.full(spec.action.shape, config.initial_log_std, np.float32)
    zeros = jax.tree.map(np.zeros_like, params)
    obs_shape = () if spec.is_pixels else spec.observation.shape
    running_return: Any = np.zeros(config.num_envs, np.float32)
    updates: Any = np.zeros((), np.int32)
    return PPOState(
        params,
        optax.ScaleByAdamState(np.zeros((), np.int32), zeros, zeros),
        statistics.empty(obs_shape),
        statistics.empty(()),
        running_return,
        updates,
    )


def acting_part(state: PPOState) -> ActingPart:
    """Return what acting needs: the network's parameters and the normaliser of observations."""
    return ActingPart(state.params, state.obs_statistics)


def with_acting_part(state: PPOState, part: ActingPart) -> PPOState:
    """Return the state with another policy in it."""
    return state._replace(params=part.params, obs_statistics=part.obs_statistics)


def act(
    config: PPOConfig, spec: EnvSpec, net: ActorCritic, state: PPOState, obs: Any, key: PRNGKeyArray
) -> tuple[Any, Remembered]:
    """Draw an action for each of N observations."""
    seen = see(config, spec, net, state.obs_statistics, obs)
    policy, value = _policy_and_value(spec, net, state.params, seen)
    action = policy.sample(key)
    return action, Remembered(policy.log_prob(action), value)


def act_greedily(
    config: PPOConfig, spec: EnvSpec, net: ActorCritic, state: PPOState, obs: Any
) -> Any:
    """Return the policy's mode for each of N observations."""
    seen = see(config, spec, net, state.obs_statistics, obs)
    policy, _ = _policy_and_value(spec, net, state.params, seen)
    return policy.mode()


def exploit(
    config: PPOConfig, spec: EnvSpec, net: ActorCritic, state: PPOState, obs: Any, key: PRNGKeyArray
) -> Any:
    """Return what a policy that has done learning does: its mode; from pixels, a sample.

    Where the picture alone does not settle the action, a deterministic policy can go to and fro
    for ever; so Atari's players sample, as they did when they learnt.
    """
    if spec.is_pixels:
        return act(config, spec, net, state, obs, key)[0]
    return act_greedily(config, spec, net, state, obs)


def see(
    config: PPOConfig, spec: EnvSpec, net: ActorCritic, obs_statistics: RunningStatistics, obs: Any
) -> Any:
    """Return what the network takes. Every path that consumes an observation comes through here.

    Vectors: clip((o - μ) / σ, -10, 10) with the running μ and σ, if the configuration says so.
    """
    if config.normalize_obs and not spec.is_pixels:
        scale = jnp.maximum(obs_statistics.std, 1e-4)
        obs = (obs - obs_statistics.mean[None]) / scale[None]
        obs = jnp.clip(obs, -10.0, 10.0)
    return net.see(obs)


def update(
    config: PPOConfig,
    spec: EnvSpec,
    net: ActorCritic,
    state: PPOState,
    batch: Transition,
    key: PRNGKeyArray,
) -> tuple[PPOState, Metrics]:
    """Return the state after `epochs` passes over the batch (axes T, N), and what was measured.

    Rows that are not valid change nothing, whatever they hold.
    """
    batch, state = _scale_rewards(config, state, _blank_invalid(batch))
    rows, metrics = _prepare(config, spec, net, state, batch)
    progress = state.updates / config.updates
    learning_rate = _linear(config.learning_rate, config.learning_rate_end, progress)
    clip = _linear(config.clip, config.clip_end, progress)
    entropy_bonus = _linear(config.entropy_bonus, config.entropy_bonus_end, progress)

    def epoch(carry: Any, key: PRNGKeyArray) -> tuple[Any, dict[str, Float[Array, " M"]]]:
        order = shuffle(key, rows.valid.shape[0]).reshape(config.minibatches, -1)
        return jax.lax.scan(minibatch, carry, order)

    def minibatch(carry: Any, indices: Int[Array, " R"]) -> tuple[Any, Metrics]:
        def choose(x: Array) -> Array:
            return x[indices]

        def descend(param: Array, direction: Array) -> Array:
            return param - learning_rate * direction

        params, optimizer = carry
        chosen = rows if config.minibatches == 1 else jax.tree.map(choose, rows)
        gradient, measured = jax.grad(loss, argnums=3, has_aux=True)(
            config, spec, net, params, chosen, clip, entropy_bonus
        )
        step, optimizer, norm = _adam(gradient, optimizer, config.max_grad_norm)
        params = jax.tree.map(descend, params, step)
        return (params, optimizer), measured | {"grad_norm": norm}

    keys = jax.random.split(key, config.epochs)
    (params, optimizer), measured = jax.lax.scan(epoch, (state.params, state.optimizer), keys)
    metrics |= jax.tree.map(jnp.mean, measured)
    metrics |= {
        "first_ratio_error": measured["ratio_error"][0, 0],
        "learning_rate": learning_rate,
        "clip_range": clip,
        "entropy_bonus": entropy_bonus,
        "update_ratio": _update_ratio(state.params, params),
    }
    del metrics["ratio_error"]
    state = state._replace(
        params=params,
        optimizer=optimizer,
        obs_statistics=_observe(config, spec, state.obs_statistics, batch),
        updates=state.updates + 1,
    )
    return state, metrics


def loss(
    config: PPOConfig,
    spec: EnvSpec,
    net: ActorCritic,
    params: Params,
    rows: Rows,
    clip: Float[Array, ""],
    entropy_bonus: Float[Array, ""],
) -> tuple[Float[Array, ""], Metrics]:
    """Return L_clip + c₁ L_value - c₂ H over the valid rows (arXiv:1707.06347, eq. 9, negated)."""
    policy, value = _policy_and_value(spec, net, params, rows.seen)
    log_prob = policy.log_prob(rows.action)
    advantage = rows.advantage - masked_mean(rows.advantage, rows.valid)
    advantage = advantage / (masked_std(rows.advantage, rows.valid) + 1e-8)
    surrogate = clipped_surrogate(log_prob, rows.log_prob, advantage, clip)
    entropy = masked_mean(policy.entropy(), rows.valid)
    value_loss = masked_mean(squared_error(value, rows.target), rows.valid)
    policy_loss = masked_mean(surrogate, rows.valid)
    distance = jnp.abs(jnp.exp(log_prob - rows.log_prob) - 1.0)
    total = policy_loss + config.value_weight * value_loss - entropy_bonus * entropy
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "approx_kl": masked_mean(approximate_kl(log_prob, rows.log_prob), rows.valid),
        "clip_fraction": masked_mean((distance > clip).astype(jnp.float32), rows.valid),
        "ratio_error": jnp.where(rows.valid, distance, 0.0).max(),
    }


def _policy_and_value(
    spec: EnvSpec, net: ActorCritic, params: Params, seen: Any
) -> tuple[Categorical | DiagonalNormal, Float[Array, " B"]]:
    """Return π(·|s) and V(s)."""
    head, value = net.apply(params, seen)
    if isinstance(spec.action, Discrete):
        return Categorical(head), value
    return DiagonalNormal(head, jnp.broadcast_to(params["log_std"], head.shape)), value


def _scale_rewards(
    config: PPOConfig, state: PPOState, batch: Transition
) -> tuple[Transition, PPOState]:
    """Divide rewards by the standard deviation of the discounted return, never shifting them.

    R ← γ R + r, then the statistics take R in, then R is forgotten where the episode ended.
    """
    if not config.scale_rewards:
        return batch, state
    ended = batch.terminated | batch.truncated

    def forward(running: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, ended = step
        running = config.discount * running + reward
        return jnp.where(ended, 0.0, running), running

    running, returns = jax.lax.scan(forward, state.running_return, (batch.reward, ended))
    seen = statistics.of_rows(returns.reshape(-1), batch.valid.reshape(-1))
    merged = statistics.merge(state.return_statistics, seen)
    scaled = jnp.clip(batch.reward / jnp.maximum(merged.std, 1e-4), -10.0, 10.0)
    state = state._replace(return_statistics=merged, running_return=running)
    return batch._replace(reward=scaled), state


def _prepare(
    config: PPOConfig, spec: EnvSpec, net: ActorCritic, state: PPOState, batch: Transition
) -> tuple[Rows, Metrics]:
    """Return the rows to learn from, and what can be measured before learning."""

    def look(step: tuple[Any, Bool[Array, " N"]]) -> Any:
        obs, valid = step
        seen = see(config, spec, net, state.obs_statistics, obs)
        return seen if spec.is_pixels else _blank(seen, valid)  # bytes are never NaN

    def flatten(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:])

    seen = jax.lax.map(look, (batch.obs, batch.valid))
    values = batch.extra.value
    next_values = _next_values(config, spec, net, state, batch)
    estimate = partial(gae, discount=config.discount, decay=config.decay)
    advantages = jax.vmap(estimate, in_axes=1, out_axes=1)(
        batch.reward, values, next_values, batch.terminated, batch.truncated
    )
    flat = jax.tree.map(
        flatten,
        Rows(
            seen,
            batch.action,
            batch.extra.log_prob,
            advantages,
            advantages + values,
            batch.valid,
        ),
    )
    return flat, _batch_metrics(config, spec, batch, values, advantages)


def _next_values(
    config: PPOConfig, spec: EnvSpec, net: ActorCritic, state: PPOState, batch: Transition
) -> Float[Array, "T N"]:
    """Return V of the true successors.

    Where no episode ended, the successor is the next row's observation, whose value is known;
    the network runs only for steps at which some episode ended, and for the last.
    """
    following = jnp.concatenate([batch.extra.value[1:], batch.extra.value[-1:]])
    ended = batch.terminated | batch.truncated
    last = jnp.arange(ended.shape[0]) == ended.shape[0] - 1
    unknown = last | ended.any(1)

    def look(row: tuple[Array, Array, Any]) -> Float[Array, " N"]:
        unknown, following, next_obs = row

        def evaluate() -> Float[Array, " N"]:
            seen = see(config, spec, net, state.obs_statistics, next_obs)
            return _policy_and_value(spec, net, state.params, seen)[1]

        return jax.lax.cond(unknown, evaluate, lambda: following)

    return _blank(jax.lax.map(look, (unknown, following, batch.next_obs)), batch.valid)


def _blank(x: Array, valid: Bool[Array, "*rows"]) -> Array:
    """Return x with zeros in the rows that are not valid."""
    rows = valid.reshape(*valid.shape, *(1,) * (x.ndim - valid.ndim))
    return jnp.where(rows, x, jnp.zeros((), x.dtype))


def _blank_invalid(batch: Transition) -> Transition:
    """Return the batch with zeros in invalid rows, observations excepted.

    A loss that leaves a row out with weight 0 is not enough: 0 · NaN is NaN in its gradient.
    Observations are blanked where they are looked at, which is cheaper.
    """
    blank = partial(_blank, valid=batch.valid)
    blanked = jax.tree.map(blank, batch._replace(obs=(), next_obs=()))
    return blanked._replace(obs=batch.obs, next_obs=batch.next_obs)


def _batch_metrics(
    config: PPOConfig,
    spec: EnvSpec,
    batch: Transition,
    values: Float[Array, "T N"],
    advantages: Float[Array, "T N"],
) -> Metrics:
    valid = batch.valid
    ended = batch.terminated | batch.truncated
    to_go = partial(reward_to_go, discount=config.discount)
    monte_carlo = jax.vmap(to_go, in_axes=1, out_axes=1)(batch.reward, ended)
    # A Monte-Carlo return is known only where the episode terminates inside the rollout.
    known = jax.vmap(partial(reward_to_go, discount=1.0), in_axes=1, out_axes=1)(
        batch.terminated.astype(jnp.float32), ended
    )
    measured = {
        "explained_variance": statistics.explained_variance(values, advantages + values, valid),
        "explained_variance_mc": statistics.explained_variance(
            values, monte_carlo, valid & (known > 0)
        ),
        "advantage_mean": masked_mean(advantages, valid),
        "advantage_std": masked_std(advantages, valid),
        "reward_mean": masked_mean(batch.reward, valid),
        "reward_std": masked_std(batch.reward, valid),
        "reward_min": jnp.where(valid, batch.reward, jnp.inf).min(),
        "reward_max": jnp.where(valid, batch.reward, -jnp.inf).max(),
        "value_mean": masked_mean(values, valid),
        "value_std": masked_std(values, valid),
    }
    if isinstance(spec.action, Discrete):
        measured["entropy_max"] = jnp.log(float(spec.action.n))
    if not spec.is_pixels:
        rows = batch.obs.reshape(-1, batch.obs.shape[-1])
        seen = statistics.of_rows(rows, valid.reshape(-1))
        measured["obs_abs_mean"] = jnp.abs(seen.mean).mean()
        measured["obs_std_min"] = seen.std.min()
        measured["obs_std_max"] = seen.std.max()
    return measured


def _observe(
    config: PPOConfig, spec: EnvSpec, seen: RunningStatistics, batch: Transition
) -> RunningStatistics:
    """Return the observation statistics with this batch's taken in."""
    if not config.normalize_obs or spec.is_pixels:
        return seen
    rows = batch.obs.reshape(-1, *batch.obs.shape[2:])
    return statistics.merge(seen, statistics.of_rows(rows, batch.valid.reshape(-1)))


def _adam(
    gradient: Params, optimizer: optax.ScaleByAdamState, max_norm: float
) -> tuple[Params, optax.ScaleByAdamState, Float[Array, ""]]:
    """Return Adam's step for the gradient shortened to `max_norm`, and the norm before that."""
    norm = optax.tree.norm(gradient)
    shorter = jnp.minimum(1.0, max_norm / (norm + 1e-6))

    def shorten(g: Array) -> Array:
        return g * shorter

    adam: Any = optax.scale_by_adam(eps=1e-5)
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to the power of an int32
        step, optimizer = adam.update(jax.tree.map(shorten, gradient), optimizer)
    return step, optimizer, norm


def _update_ratio(before: Params, after: Params) -> Float[Array, ""]:
    """Return ‖θ' - θ‖ / ‖θ‖ over all parameters and the whole update."""
    moved = jax.tree.map(jnp.subtract, after, before)
    return optax.tree.norm(moved) / optax.tree.norm(before)


def _linear(start: float, end: float, progress: Float[Array, ""]) -> Float[Array, ""]:
    return start + (end - start) * jnp.minimum(progress, 1.0)
