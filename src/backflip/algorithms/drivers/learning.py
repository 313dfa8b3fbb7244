"""What an algorithm learns after a rollout: from it alone, or from what a replay remembers."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from backflip.algorithms.drivers.driver import Learner, RewardFunction, own_reward
from backflip.algorithms.interface import Algorithm, Metrics, ReplayPlan, rollouts_of
from backflip.core.replay.draws import sample
from backflip.core.replay.layout import Layout, layout
from backflip.core.replay.preference import reprioritize
from backflip.core.replay.rows import add
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition


def plan_of(algorithm: Algorithm) -> ReplayPlan:
    """Return the plan of an algorithm that has one."""
    if algorithm.replay is None:
        raise ValueError(f"`{algorithm.name}` has no replay")
    return algorithm.replay


def layout_of(spec: EnvSpec, algorithm: Algorithm, seeds: int = 1) -> Layout:
    """Return the layout of the replay that an algorithm wants."""
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
    )


def refuse_summed_rewards(algorithm: Algorithm, reward: RewardFunction) -> None:
    """Refuse a reward that is not the environment's own where rows hold sums of several.

    It would be looked up for the first of the n env steps alone.
    """
    if algorithm.replay is not None and algorithm.replay.n_step > 1 and reward is not own_reward:
        raise ValueError(f"`{algorithm.name}` with n_step > 1 cannot learn from another reward")


def learn_once(
    algorithm: Algorithm,
    reward: RewardFunction,
    learner: Learner,
    batch: Transition,
    key: PRNGKeyArray,
    parameters: Any,
) -> tuple[Learner, Metrics]:
    """Learn from a rollout once."""
    batch = batch._replace(reward=reward(parameters, batch))
    state, metrics = algorithm.update(learner.algorithm, batch, key)
    return learner._replace(algorithm=state), metrics


def learn_from_replay(
    layout: Layout,
    algorithm: Algorithm,
    reward: RewardFunction,
    learner: Learner,
    batch: Transition,
    key: PRNGKeyArray,
    parameters: Any,
) -> tuple[Learner, Metrics]:
    """Remember a rollout, draw U minibatches and learn from them.

    Rewards are looked up when rows are drawn, so that all of the past has the newest reward.
    """
    plan = plan_of(algorithm)
    draw_key, update_key = jax.random.split(key)
    memory = add(layout, learner.replay, batch)
    shape = (plan.gradient_steps, plan.batch_size)
    memory, drawn = sample(layout, memory, draw_key, shape, correction(plan, memory.draws))
    drawn = drawn._replace(reward=reward(parameters, drawn))
    state, metrics = algorithm.update(learner.algorithm, drawn, update_key)
    if plan.priority is not None:
        errors = plan.priority.errors(state)
        memory = reprioritize(layout, memory, drawn, errors, plan.priority.exponent)
    return learner._replace(algorithm=state, replay=memory), metrics


def correction(plan: ReplayPlan, draws: Any) -> Any:
    """Return β of the importance weights after so many draws: on a line from its start to 1."""
    if plan.priority is None:
        return 0.0
    share = jnp.minimum(draws / plan.priority.corrected_after, 1.0)
    return plan.priority.correction + (1.0 - plan.priority.correction) * share


def rollouts_of_warm_up(algorithm: Algorithm) -> int:
    """Return how many whole rollouts the warm-up takes."""
    warm_up = algorithm.replay.warm_up if algorithm.replay else 0
    return rollouts_of(warm_up, algorithm.num_envs, algorithm.rollout_length)


def env_steps_after(algorithm: Algorithm, updates: int) -> int:
    """Return the env steps of one seed after so many updates, the warm-up's included."""
    rollouts = rollouts_of_warm_up(algorithm) + updates
    return rollouts * algorithm.num_envs * algorithm.rollout_length
