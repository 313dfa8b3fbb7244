"""Deep Q-networks: action values learnt from a replay, by one-step targets of an older network.

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
  * Adam instead of RMSProp; the gradient is shortened by its norm;
  * the learning rate can go along a line to its end;
  * N environments side by side, and U gradient steps after T env steps of each, all towards the
    same θ⁻, which follows θ between two such rounds;
  * the Huber loss clips the error's gradient, as the first paper says; `squared` does not;
  * a truncated step bootstraps: only a terminated one is the end;
  * uncorrected n-step returns, as in arXiv:1710.02298;
  * the minibatches of a round are drawn together: priorities change only after the last of them,
    and weights are over the largest of all;
  * rewards are clipped only where `clip_rewards` says so, as it does for pictures;
  * the gradient that reaches the torso from the two streams of `dueling` is not scaled by 1/√2;
  * pictures go through patches that do not overlap, unless `network=nature` says otherwise;
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
from backflip.algorithms.parts.exploration import epsilon, epsilon_greedily, refuse_early_end
from backflip.algorithms.parts.masking import blank_invalid, blank_vectors
from backflip.algorithms.parts.replay_settings import refuse_unworkable
from backflip.algorithms.parts.rewards import reward_metrics
from backflip.algorithms.rollouts import gradient_steps
from backflip.core.gradients import clip_by_global_norm, update_ratio
from backflip.core.losses import huber_error, squared_error
from backflip.core.schedules import linear
from backflip.core.spec import Discrete, EnvSpec
from backflip.core.statistics import masked_mean
from backflip.core.targets import bellman_target, polyak, value_of_choice
from backflip.core.types import Transition
from backflip.networks.layers import Params
from backflip.networks.q_network import QNetwork, q_network
from runshelf.errors import UsageError

LOSSES = {"huber": huber_error, "squared": squared_error}  # ℓ
PIXEL_EPSILON = 0.01  # of evaluation from pixels, where a greedy policy can stand still for ever


class DQNState(NamedTuple):
    """Everything DQN carries from one update to the next.

    Attributes:
        params: θ, of the network that acts.
        target: θ⁻, of the network that rates successors.
        optimizer: Adam's moments.
        errors: y - Q of the last U minibatches, if rows have priorities; else `()`.
        updates: number of updates done, each of U gradient steps.
    """

    params: Params
    target: Params
    optimizer: Any
    errors: Float[Array, "U B"] | tuple[()]
    updates: Int[Array, ""]


class ActingPart(NamedTuple):
    """What acting needs when learning is over.

    Attributes:
        params: θ.
    """

    params: Params


def dqn(config: DQNConfig, spec: EnvSpec) -> Algorithm:
    """Return DQN for the spaces of `spec`.

    Raises:
        UsageError: actions are not discrete, or settings cannot be.
    """
    actions = _check(config, spec)
    net = q_network(spec, actions, config.hidden, dueling=config.dueling, pixels=config.network)
    return Algorithm(
        name="dqn",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=partial(init, config, net),
        act=partial(act, config, net),
        evaluation_action=partial(evaluation_action, net, PIXEL_EPSILON if spec.is_pixels else 0.0),
        update=partial(update, config, net),
        policy=acting_part,
        with_policy=with_acting_part,
        replay=replay_plan(config),
        assess=partial(assess, net),
    )


def replay_plan(config: DQNConfig) -> ReplayPlan:
    """Return what is kept of the past and drawn from it."""

    def errors(state: DQNState) -> Any:
        return state.errors

    priorities = Priorities(
        config.priority_exponent, config.importance_sampling_exponent, config.updates, errors
    )
    return ReplayPlan(
        capacity=config.buffer_size,
        batch_size=config.batch_size,
        gradient_steps=gradient_steps(config),
        warm_up=config.learning_starts,
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


def acting_part(state: DQNState) -> ActingPart:
    """Return what acting needs when learning is over."""
    return ActingPart(state.params)


def with_acting_part(state: DQNState, part: ActingPart) -> DQNState:
    """Return the state with another policy in it."""
    return state._replace(params=part.params)


def act(
    config: DQNConfig, net: QNetwork, state: DQNState, obs: Any, key: PRNGKeyArray
) -> tuple[Int[Array, " N"], tuple[()]]:
    """Return an action for each of N observations: random ones with probability ε."""
    share = epsilon(config, state.updates)
    return epsilon_greedily(action_values(net, state, obs), share, key), ()


def evaluation_action(
    net: QNetwork, share: float, state: DQNState, obs: Any, key: PRNGKeyArray
) -> Int[Array, " N"]:
    """Return what a policy that has done learning does: the best action, but for a small share."""
    values = action_values(net, state, obs)
    if not share:
        return jnp.argmax(values, -1).astype(jnp.int32)
    return epsilon_greedily(values, share, key)


def assess(net: QNetwork, state: DQNState, obs: Any) -> dict[str, Float[Array, " N"]]:
    """Return max_a Q_θ(s, a) for each of N observations: what a greedy policy expects."""
    return {"value": action_values(net, state, obs).max(-1)}


def action_values(net: QNetwork, state: DQNState, obs: Any) -> Float[Array, "N A"]:
    """Return Q_θ(s, ·) for each of N observations."""
    return net.apply(state.params, net.see(obs))


def learning_rate(config: DQNConfig, state: DQNState) -> Float[Array, ""]:
    """Return Adam's step size, on its line from first to last; the same in all U steps."""
    progress = state.updates / config.updates
    return linear(config.learning_rate, config.learning_rate_end, progress)


def update(
    config: DQNConfig, net: QNetwork, state: DQNState, batch: Transition, key: PRNGKeyArray
) -> tuple[DQNState, Metrics]:
    """Return the state after a gradient step on each of U minibatches (axes U, B), and metrics.

    Rows that are not valid change nothing, whatever they hold.
    """
    del key
    batch = blank_invalid(batch)
    batch = see(net, batch)
    target = follow(config, state)
    rate = learning_rate(config, state)

    def step(carry: Any, drawn: tuple[Transition, Array]) -> tuple[Any, Any]:
        (params, optimizer), (rows, rated) = carry, drawn
        goal = targets(config, net, params, rated, rows)
        gradient, value = jax.grad(loss, argnums=2, has_aux=True)(config, net, params, rows, goal)
        gradient, norm = clip_by_global_norm(gradient, config.max_grad_norm)
        params, optimizer, _ = adam_step(params, gradient, optimizer, rate)
        return (params, optimizer), (value, goal, norm)

    (params, optimizer), (value, goal, norms) = jax.lax.scan(
        step, (state.params, state.optimizer), (batch, rate_successors(net, target, batch))
    )
    metrics = _metrics(config, batch, value, goal) | {
        "epsilon": epsilon(config, state.updates),
        "learning_rate": rate,
        "grad_norm": norms.mean(),
        "update_ratio": update_ratio(state.params, params),
    }
    errors = goal - value if config.prioritized else ()
    return DQNState(params, target, optimizer, errors, state.updates + 1), metrics


def follow(config: DQNConfig, state: DQNState) -> Params:
    """Return θ⁻, after θ⁻ ← τ θ + (1 - τ) θ⁻ if a `target_update_interval` has passed."""
    rows = config.num_envs * config.rollout_length
    passed = (state.updates + 1) * rows // config.target_update_interval
    due = passed > state.updates * rows // config.target_update_interval
    moved = state.params
    if config.tau < 1.0:
        moved = polyak(state.target, state.params, config.tau)
    return jax.tree.map(partial(jnp.where, due), moved, state.target)


def see(net: QNetwork, batch: Transition) -> Transition:
    """Return the rows (U, B) with what the network takes in the place of their observations."""

    def seen(obs: Any) -> Any:
        obs = blank_vectors(obs, batch.valid)
        flat = net.see(obs.reshape(-1, *obs.shape[2:]))
        return flat.reshape(*batch.valid.shape, *flat.shape[1:])

    return batch._replace(obs=seen(batch.obs), next_obs=seen(batch.next_obs))


def rate_successors(net: QNetwork, target: Params, batch: Transition) -> Float[Array, "U B A"]:
    """Return Q_θ⁻(s', ·) of all rows at once: θ⁻ stands still for all U gradient steps."""
    seen = batch.next_obs
    flat = seen.reshape(-1, *seen.shape[2:])
    return net.apply(target, flat).reshape(*batch.valid.shape, -1)


def targets(
    config: DQNConfig, net: QNetwork, params: Params, rated: Float[Array, "B A"], rows: Transition
) -> Float[Array, " B"]:
    """Return y of every row of a minibatch whose successors are rated; 0 where it is not valid."""
    chooser = rated
    if config.double:
        chooser = net.apply(params, rows.next_obs)
    best = value_of_choice(rated, chooser)
    return bellman_target(rows.reward, rows.extra.discount, rows.terminated, best)


def loss(
    config: DQNConfig, net: QNetwork, params: Params, rows: Transition, goal: Float[Array, " B"]
) -> tuple[Float[Array, ""], Float[Array, " B"]]:
    """Return the mean of w ℓ(y - Q_θ(s, a)) over the valid rows, and Q_θ(s, a).

    The gradient does not reach y.
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
    """Return the number of actions, or refuse what cannot be."""
    if not isinstance(spec.action, Discrete):
        raise UsageError(f"`dqn` chooses discrete actions, and those of `{spec.id}` are continuous")
    refuse_unworkable(config, spec, config.n_step)
    refuse_early_end(config)
    return spec.action.n
