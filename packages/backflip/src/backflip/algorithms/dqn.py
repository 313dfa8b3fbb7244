"""Deep Q-networks: action values learned from a replay, with targets from an older network.

Sources:
  * Mnih et al. 2015, "Human-level control through deep reinforcement learning", algorithm 1.
  * `double`: van Hasselt et al. 2016, arXiv:1509.06461, eq. 4.
  * `dueling`: Wang et al. 2016, arXiv:1511.06581, eq. 9 (in `backflip.networks.q_network`).
  * `prioritized`: Schaul et al. 2016, arXiv:1511.05952, eq. 1 and section 3.4.
  * `n_step`: Sutton 1988; with a replay as in Hessel et al. 2018, arXiv:1710.02298.

    y = r + γ (1 - terminated) Q_θ⁻(s', argmax_b Q_θ(s', b))      (argmax of Q_θ⁻ if not double)
    L = mean w ℓ(y - Q_θ(s, a)),   ℓ(x) = ½ x², or |x| - ½ where |x| > 1 (Huber)

Departures from the papers:
  * the defaults are for classic control: double, three-step returns, minibatches of 128;
  * Adam instead of RMSProp; global gradient-norm clip;
  * the learning rate can follow a linear schedule;
  * N environments side by side, and U gradient steps after T env steps of each, all towards the
    same θ⁻, which moves between two such rounds;
  * the Huber loss clips the error's gradient, as the first paper says; `squared` does not;
  * a truncated step bootstraps: only a terminated one is the end;
  * uncorrected n-step returns, as in arXiv:1710.02298;
  * the minibatches of a round are drawn together: priorities change only after the last of them,
    and weights are divided by the largest of all;
  * rewards are clipped only if `clip_rewards` is true, the default for pictures;
  * the gradient that reaches the torso from the two heads of `dueling` is not scaled by 1/√2;
  * the first layer on images takes non-overlapping patches, unless `network=nature`;
  * evaluation is greedy on vectors; from pixels 1 % of the actions are random, not 5 %.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.algorithms.entries.dqn import DQNConfig
from backflip.algorithms.interface import Algorithm, Metrics, Priorities, ReplayPlan
from backflip.algorithms.parts.adam import adam_step, first_moments
from backflip.algorithms.parts.critics import critic_metrics
from backflip.algorithms.parts.epsilon_greedy import epsilon, epsilon_greedily, refuse_early_end
from backflip.algorithms.parts.identities import largest, rows_to_check
from backflip.algorithms.parts.invalid_rows import blank_invalid, blank_vectors
from backflip.algorithms.parts.replay_settings import refuse_unworkable
from backflip.algorithms.parts.reward_metrics import reward_metrics
from backflip.algorithms.rollouts import gradient_steps
from backflip.core.gradients import clip_by_global_norm, update_ratio
from backflip.core.identities import greedy_errors
from backflip.core.losses import huber_error, squared_error
from backflip.core.schedules import linear
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.statistics import masked_mean
from backflip.core.targets import bellman_target, polyak, value_of_choice
from backflip.core.types import Transition
from backflip.networks.layers import Params
from backflip.networks.q_network import QNetwork, q_network
from runshelf.errors import UsageError

LOSSES = {"huber": huber_error, "squared": squared_error}  # ℓ
PIXEL_EPSILON = 0.01  # in evaluation from pixels, where a greedy policy can get stuck


class DQNState(NamedTuple):
    """Everything DQN carries from one update to the next.

    Attributes:
        params: θ, of the network that acts.
        target: θ⁻, of the target network.
        optimizer: Adam's moments.
        errors: y - Q of the last U minibatches with prioritised replay; else `()`.
        updates: number of updates done, each of U gradient steps.
    """

    params: Params
    target: Params
    optimizer: Any
    errors: Float[Array, "U B"] | tuple[()]
    updates: Int[Array, ""]


class SavedPolicy(NamedTuple):
    """The part of a state that acts after training: θ."""

    params: Params


def dqn(config: DQNConfig, spec: EnvSpec) -> Algorithm:
    """Return DQN for the spaces of `spec`.

    Raises:
        UsageError: actions are not discrete, or the settings are invalid.
    """
    actions = _check(config, spec)
    net = q_network(spec, actions, config.hidden, dueling=config.dueling, pixels=config.network)
    return Algorithm(
        name="dqn",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, net),
        act=partial(act, config, net),
        evaluation_action=partial(evaluation_action, net, PIXEL_EPSILON if spec.is_image else 0.0),
        update=partial(update, config, net),
        policy=saved_policy,
        with_policy=with_saved_policy,
        replay=replay_plan(config),
        assess=partial(assess, net),
    )


def replay_plan(config: DQNConfig) -> ReplayPlan:
    """Return the replay settings for the driver."""

    def errors(state: DQNState) -> Any:
        return state.errors

    priorities = Priorities(
        config.priority_exponent, config.importance_sampling_exponent, config.updates, errors
    )
    return ReplayPlan(
        capacity=config.buffer_size,
        batch_size=config.batch_size,
        gradient_steps=gradient_steps(config),
        learning_starts=config.learning_starts,
        n_step=config.n_step,
        discount=config.discount,
        priority=priorities if config.prioritized else None,
        clip_rewards=config.clip_rewards,
    )


def init(config: DQNConfig, net: QNetwork, seed: int) -> DQNState:
    """Return the state before the first update, as NumPy arrays."""
    params = net.init(np.random.default_rng(seed))
    errors: Any = np.zeros((gradient_steps(config), config.batch_size), np.float32)
    updates: Any = np.zeros((), np.int32)
    return DQNState(
        params,
        jax.tree.map(np.copy, params),
        first_moments(params),
        errors if config.prioritized else (),
        updates,
    )


def saved_policy(state: DQNState) -> SavedPolicy:
    """Return the part of the state that acts after training."""
    return SavedPolicy(state.params)


def with_saved_policy(state: DQNState, part: SavedPolicy) -> DQNState:
    """Return the state with the parameters of `part`."""
    return state._replace(params=part.params)


def act(
    config: DQNConfig, net: QNetwork, state: DQNState, obs: Any, key: PRNGKeyArray
) -> tuple[Int[Array, " N"], tuple[()]]:
    """Return an action for each of N observations, ε-greedy."""
    share = epsilon(config, state.updates)
    return epsilon_greedily(action_values(net, state, obs), share, key), ()


def evaluation_action(
    net: QNetwork, share: float, state: DQNState, obs: Any, key: PRNGKeyArray
) -> Int[Array, " N"]:
    """Return the best action for each of N observations, or a random one with chance `share`."""
    values = action_values(net, state, obs)
    if not share:
        return jnp.argmax(values, -1).astype(jnp.int32)
    return epsilon_greedily(values, share, key)


def assess(net: QNetwork, state: DQNState, obs: Any) -> dict[str, Float[Array, " N"]]:
    """Return max_a Q_θ(s, a) for each of N observations, the value of the greedy policy."""
    return {"value": action_values(net, state, obs).max(-1)}


def action_values(net: QNetwork, state: DQNState, obs: Any) -> Float[Array, "N A"]:
    """Return Q_θ(s, ·) for each of N observations."""
    return net.apply(state.params, net.preprocess(obs))


def learning_rate(config: DQNConfig, state: DQNState) -> Float[Array, ""]:
    """Return Adam's step size on its linear schedule; constant within an update."""
    progress = state.updates / config.updates
    return linear(config.learning_rate, config.learning_rate_end, progress)


def update(
    config: DQNConfig, net: QNetwork, state: DQNState, batch: Transition, key: PRNGKeyArray
) -> tuple[DQNState, Metrics]:
    """Return the state after a gradient step on each of U minibatches (axes U, B), and metrics.

    Invalid rows do not enter the losses. Observations are preprocessed one minibatch at a time,
    which stays in the CPU's cache: of all at once, an update on pictures takes twice as long.
    """
    del key
    batch = blank_invalid(batch)
    target = move_target(config, state)
    rate = learning_rate(config, state)

    def step(carry: Any, rows: Transition) -> tuple[Any, Any]:
        params, optimizer = carry
        rows = preprocess(net, rows)
        goal = targets(config, net, params, target, rows)
        gradient, value = jax.grad(loss, argnums=2, has_aux=True)(config, net, params, rows, goal)
        gradient, norm = clip_by_global_norm(gradient, config.max_grad_norm)
        params, optimizer, _ = adam_step(params, gradient, optimizer, rate)
        return (params, optimizer), (value, goal, norm)

    (params, optimizer), (value, goal, norms) = jax.lax.scan(
        step, (state.params, state.optimizer), batch
    )
    metrics = _metrics(config, batch, value, goal) | {
        "epsilon": epsilon(config, state.updates),
        "learning_rate": rate,
        "grad_norm": norms.mean(),
        "update_ratio": update_ratio(state.params, params),
        "target_update_ratio": update_ratio(state.target, target),
        "target_error_max": target_error(config, net, state.params, target, batch, goal),
    }
    errors = goal - value if config.prioritized else ()
    return DQNState(params, target, optimizer, errors, state.updates + 1), metrics


def move_target(config: DQNConfig, state: DQNState) -> Params:
    """Return θ⁻, after θ⁻ ← τ θ + (1 - τ) θ⁻ if `target_update_interval` env steps have passed."""
    rows = config.num_envs * config.rollout_length
    passed = (state.updates + 1) * rows // config.target_update_interval
    due = passed > state.updates * rows // config.target_update_interval
    moved = state.params
    if config.tau < 1.0:
        moved = polyak(state.target, state.params, config.tau)
    return jax.tree.map(partial(jnp.where, due), moved, state.target)


def preprocess(net: QNetwork, rows: Transition) -> Transition:
    """Return the rows (B) of a minibatch with the network's inputs instead of observations."""
    obs, next_obs = (blank_vectors(x, rows.valid) for x in (rows.obs, rows.next_obs))
    return rows._replace(obs=net.preprocess(obs), next_obs=net.preprocess(next_obs))


def targets(
    config: DQNConfig, net: QNetwork, params: Params, target: Params, rows: Transition
) -> Float[Array, " B"]:
    """Return y of every row of a minibatch."""
    next_values = net.apply(target, rows.next_obs)
    chooser = net.apply(params, rows.next_obs) if config.double else next_values
    best = value_of_choice(next_values, chooser)
    return bellman_target(rows.reward, rows.extra.discount, rows.terminated, best)


def target_error(
    config: DQNConfig,
    net: QNetwork,
    params: Params,
    target: Params,
    batch: Transition,
    goal: Float[Array, "U B"],
) -> Float[Array, ""]:
    """Return the largest error of y in some rows of the first minibatch, computed once more."""
    rows = preprocess(net, rows_to_check(batch))
    next_values = net.apply(target, rows.next_obs)
    chooser = net.apply(params, rows.next_obs) if config.double else next_values
    discounts, goals = rows.extra.discount, goal[0, : len(rows.reward)]
    errors = greedy_errors(rows.reward, discounts, rows.terminated, next_values, chooser, goals)
    return largest(errors, rows.valid)


def loss(
    config: DQNConfig, net: QNetwork, params: Params, rows: Transition, goal: Float[Array, " B"]
) -> tuple[Float[Array, ""], Float[Array, " B"]]:
    """Return the mean of w ℓ(y - Q_θ(s, a)) over the valid rows, and Q_θ(s, a).

    No gradient flows through y.
    """
    every = net.apply(params, rows.obs)
    value = (every * jax.nn.one_hot(rows.action, every.shape[-1])).sum(-1)
    each = rows.extra.weight * LOSSES[config.loss](value, goal)
    return masked_mean(each, rows.valid), value


def _metrics(
    config: DQNConfig, batch: Transition, value: Float[Array, "U B"], goal: Float[Array, "U B"]
) -> Metrics:
    valid = batch.valid
    each = batch.extra.weight * LOSSES[config.loss](value, goal)
    of_critic = critic_metrics(value[:, None], goal, valid)
    return of_critic | reward_metrics(batch.reward, valid) | {"q_loss": masked_mean(each, valid)}


def _check(config: DQNConfig, spec: EnvSpec) -> int:
    """Return the number of actions, or refuse invalid spaces and settings."""
    if not isinstance(spec.action, Discrete):
        raise UsageError(f"`dqn` chooses discrete actions, and those of `{spec.id}` are continuous")
    refuse_unworkable(config, spec, config.n_step)
    refuse_early_end(config)
    return spec.action.n
