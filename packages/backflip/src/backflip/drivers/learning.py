"""Learning after a rollout: from the rollout once, or from rows drawn from a replay."""

from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from backflip.algorithms.interface import Algorithm, Metrics, ReplayPlan
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.replay.layout import Layout, Replay, Steps, layout
from backflip.core.replay.priorities import reprioritize
from backflip.core.replay.rows import add, read_steps
from backflip.core.replay.sampling import sample
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.action_match import action_match, has_action_match
from backflip.drivers.driver import (
    Learner,
    RewardFunction,
    RewardParameters,
    own_reward,
)


def plan_of(algorithm: Algorithm) -> ReplayPlan:
    """Return the replay plan of an algorithm that has one."""
    if algorithm.replay is None:
        raise ValueError(f"`{algorithm.name}` has no replay")
    return algorithm.replay


def layout_of(spec: EnvSpec, algorithm: Algorithm, seeds: int = 1) -> Layout:
    """Return the layout of an algorithm's replay."""
    plan = plan_of(algorithm)
    return layout(
        spec,
        capacity=plan.capacity,
        num_envs=algorithm.num_envs,
        rollout_length=algorithm.rollout_length,
        n_step=plan.n_step,
        discount=plan.discount,
        prioritized=plan.priority is not None,
        seeds=seeds,
        clip_rewards=plan.clip_rewards,
        keeps_successors=plan.keeps_successors,
        recent_share=plan.recency.share,
        recent_env_steps=plan.recency.env_steps,
    )


@runtime_checkable
class Learn(Protocol):
    """Learns from a rollout, for one seed."""

    def __call__(
        self,
        learner: Learner,
        batch: Transition,
        key: PRNGKeyArray,
        parameters: RewardParameters,
        /,
    ) -> tuple[Learner, Metrics]:
        """Return the learner after learning from a rollout (T, N), and metrics."""
        ...


def learning_of(spec: EnvSpec, algorithm: Algorithm, reward: RewardFunction) -> Learn:
    """Return a function that learns from each rollout once, or from a replay in JAX."""
    if algorithm.replay is None:
        return partial(learn_once, algorithm, reward)
    return partial(learn_from_replay, spec, layout_of(spec, algorithm), algorithm, reward)


def learn_once(
    algorithm: Algorithm,
    reward: RewardFunction,
    learner: Learner,
    batch: Transition,
    key: PRNGKeyArray,
    parameters: RewardParameters,
) -> tuple[Learner, Metrics]:
    """Learn from a rollout once."""
    batch = with_reward(reward, parameters, batch)
    state, metrics = algorithm.update(learner.algorithm, batch, key)
    return learner._replace(algorithm=state), metrics


def learn_from_replay(
    spec: EnvSpec,
    layout: Layout,
    algorithm: Algorithm,
    reward: RewardFunction,
    learner: Learner,
    batch: Transition,
    key: PRNGKeyArray,
    parameters: RewardParameters,
) -> tuple[Learner, Metrics]:
    """Add a rollout to the replay, draw U minibatches and learn from them.

    Rewards are looked up when rows are drawn, so the whole replay has the newest reward.
    """
    plan = plan_of(algorithm)
    draw_key, update_key = jax.random.split(key)
    memory: Any = add(layout, replay_of(learner), batch)
    shape = (plan.gradient_steps, plan.batch_size)
    memory, drawn = sample(layout, memory, draw_key, shape, correction(plan, memory.draws))
    steps = steps_to_look_up(layout, memory, drawn, reward)
    drawn = with_reward(reward, parameters, drawn, steps)
    state, metrics = algorithm.update(learner.algorithm, drawn, update_key)
    if has_action_match(spec, algorithm):
        metrics |= action_match(algorithm, learner.algorithm, batch, key)
    if plan.priority is not None:
        errors = plan.priority.errors(state)
        memory = reprioritize(layout, memory, drawn, errors, plan.priority.exponent)
    return learner._replace(algorithm=state, replay=memory), metrics


def replay_of(learner: Learner) -> Replay:
    """Return the replay of a learner that has one."""
    if not isinstance(learner.replay, Replay):
        raise TypeError("this learner has no replay")
    return learner.replay


def steps_to_look_up(
    layout: Layout, replay: Replay, drawn: Transition, reward: RewardFunction
) -> Steps | tuple[()]:
    """Return the single env steps of drawn rows, for `with_reward`; `()` if not needed.

    They are not needed for true rewards, which the replay sums, nor for rows of one env step.
    """
    if reward is own_reward or layout.n_step == 1:
        return ()
    return read_steps(layout, replay, drawn.extra.place)


def with_reward(
    reward: RewardFunction,
    parameters: RewardParameters,
    batch: Transition,
    steps: Steps | tuple[()] = (),
) -> Transition:
    """Return the batch (T, N) or (U, B) with the rewards to learn from.

    R = Σ_{k<n} discount_k r(step_k) with `steps`, else r(row).
    """
    if not isinstance(steps, Steps):
        return batch._replace(reward=reward(parameters, batch))

    def join(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:])

    each = reward(parameters, jax.tree.map(join, steps.rows)).reshape(steps.discount.shape)
    counted = jnp.where(steps.discount > 0, steps.discount * each, 0.0)
    return batch._replace(reward=counted.sum(1))


def correction(plan: ReplayPlan, draws: Any) -> Any:
    """Return β of the importance weights after so many draws, on its linear schedule to 1."""
    if plan.priority is None:
        return 0.0
    share = jnp.minimum(draws / plan.priority.corrected_after, 1.0)
    return plan.priority.correction + (1.0 - plan.priority.correction) * share


def random_rollouts(algorithm: Algorithm) -> int:
    """Return how many whole rollouts of random actions come before learning."""
    env_steps = algorithm.replay.learning_starts if algorithm.replay else 0
    return rollouts_of(env_steps, algorithm.num_envs, algorithm.rollout_length)


def env_steps_after(algorithm: Algorithm, updates: int) -> int:
    """Return the env steps of one seed after so many updates, those before learning included."""
    rollouts = random_rollouts(algorithm) + updates
    return rollouts * algorithm.num_envs * algorithm.rollout_length
