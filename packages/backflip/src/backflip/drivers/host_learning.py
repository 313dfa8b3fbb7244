"""Learning after a rollout outside JAX: updates are compiled, the replay is in NumPy arrays."""

import dataclasses
from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, UInt32

from backflip.algorithms.interface import Algorithm, Metrics
from backflip.core.replay.layout import Layout, Replay
from backflip.core.replay.priorities import reprioritize
from backflip.core.replay.rows import add
from backflip.core.replay.sampling import sample_on_host
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.action_match import action_match, has_action_match
from backflip.drivers.driver import Learner, RewardFunction, RewardParameters, own_reward
from backflip.drivers.episodes import episode_metrics, episode_totals
from backflip.drivers.host_stepping import cut_at_end
from backflip.drivers.learning import (
    correction,
    layout_of,
    plan_of,
    replay_of,
    with_reward,
)
from backflip.drivers.replay_rewards import ReplayRewards
from backflip.drivers.seeds import over_seeds
from backflip.drivers.thinning import MetricsOfSeeds

REPLAY = 0x8E91A000


@runtime_checkable
class LearnOnHost(Protocol):
    """Learns from a rollout of a phase, for all seeds."""

    def __call__(
        self,
        learners: Learner,
        batch: Transition,
        key: UInt32[np.ndarray, "S words"],
        cut: bool,
        /,
    ) -> tuple[Learner, MetricsOfSeeds]:
        """Return the learners after learning from rollouts (S, T, N), and metrics.

        If `cut` is true, the environments are reset after this batch.
        """
        ...


@runtime_checkable
class LearningOfPhase(Protocol):
    """Begins a phase, during which the reward stays the same."""

    def __call__(self, learners: Learner, parameters: RewardParameters, /) -> LearnOnHost:
        """Return the function that learns from each rollout of the phase."""
        ...


def learning_on_host(
    spec: EnvSpec, algorithm: Algorithm, reward: RewardFunction
) -> LearningOfPhase:
    """Return how to learn in a phase: from each rollout once, or from the replay."""
    if algorithm.replay is None:
        return _learning_once(algorithm, reward)
    return _learning_from_replay(spec, algorithm, reward)


def _learning_once(algorithm: Algorithm, reward: RewardFunction) -> LearningOfPhase:
    update = over_seeds(partial(_update, algorithm, reward, compared=False), donate=(0,))

    def begin(learners: Learner, parameters: RewardParameters) -> LearnOnHost:
        del learners

        def learn(
            learners: Learner, batch: Transition, key: np.ndarray, cut: bool
        ) -> tuple[Learner, MetricsOfSeeds]:
            return update(learners, batch, batch, key, np.full(key.shape[0], cut), parameters)

        return learn

    return begin


def _learning_from_replay(
    spec: EnvSpec, algorithm: Algorithm, reward: RewardFunction
) -> LearningOfPhase:
    compared = has_action_match(spec, algorithm)
    update = over_seeds(partial(_update, algorithm, own_reward, compared=compared), donate=(0,))
    plan = plan_of(algorithm)
    of_learned = None if reward is own_reward else ReplayRewards(reward)

    def begin(learners: Learner, parameters: RewardParameters) -> LearnOnHost:
        layout = layout_of(spec, algorithm, learners.key.shape[0])
        rewards = None
        if of_learned is not None:
            rewards = of_learned.of_replay(layout, replay_of(learners), parameters)

        def learn(
            learners: Learner, batch: Transition, key: np.ndarray, cut: bool
        ) -> tuple[Learner, MetricsOfSeeds]:
            memory = replay_of(learners)
            at = int(memory.position)
            add_rollout(layout, memory, cut_at_end(batch, cut))
            if of_learned is None or rewards is None:
                drawn = _draw(layout, memory, algorithm, key)
            else:
                rewards[at : at + batch.reward.shape[1]] = of_learned.of_rollout(batch, parameters)
                unclipped = dataclasses.replace(layout, clip_rewards=False)
                drawn = _draw(unclipped, memory._replace(reward=rewards), algorithm, key)
            collected = batch._replace(next_obs=(), extra=())
            if not compared:
                collected = collected._replace(obs=(), action=())
            cuts = np.zeros(len(key), bool)
            learners = learners._replace(replay=())
            learned, measured = update(learners, collected, drawn, key, cuts, parameters)
            if plan.priority is not None:
                errors = np.asarray(plan.priority.errors(learned.algorithm))
                memory = reprioritize(layout, memory, drawn, errors, plan.priority.exponent)
            return learned._replace(replay=memory), measured

        return learn

    return begin


def add_rollout(layout: Layout, memory: Replay, batch: Transition) -> None:
    """Write transitions (S, T, N) into the replay of all seeds; seeds are blocks of columns."""

    def columns(x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x, 0, 1).reshape(x.shape[1], -1, *x.shape[3:])

    add(layout, memory, jax.tree.map(columns, batch._replace(extra=(), scene=())))


def _draw(layout: Layout, memory: Replay, algorithm: Algorithm, key: np.ndarray) -> Transition:
    """Return U minibatches of each seed, (S, U, B)."""
    plan = plan_of(algorithm)
    rngs = [np.random.default_rng([REPLAY, *one.tolist()]) for one in key]
    shape, beta = (plan.gradient_steps, plan.batch_size), correction(plan, memory.draws)
    return sample_on_host(layout, memory, rngs, shape, float(beta))


def _update(
    algorithm: Algorithm,
    reward: RewardFunction,
    learner: Learner,
    collected: Transition,
    batch: Transition,
    key_data: Array,
    cut: Bool[Array, ""],
    parameters: RewardParameters,
    *,
    compared: bool,
) -> tuple[Learner, Metrics]:
    """Return one seed's learner after an update, and metrics.

    Episodes are counted in `collected`, and its actions are compared with the policy if `compared`.
    The batch is `collected` again, or rows from a replay. If `cut` is true, unfinished episodes are
    truncated for the algorithm, but not counted in the episode statistics.
    """
    total, length, returns, lengths = episode_totals(
        learner.episode_return, learner.episode_length, collected
    )
    ended = (collected.terminated | collected.truncated) & collected.valid
    episodes = episode_metrics(returns, lengths, ended)
    last = jnp.arange(batch.reward.shape[0])[:, None] == batch.reward.shape[0] - 1
    truncated = batch.truncated | (last & cut & ~batch.terminated)
    batch = with_reward(reward, parameters, batch._replace(truncated=truncated))
    key = jax.random.wrap_key_data(key_data)
    state, metrics = algorithm.update(learner.algorithm, batch, key)
    if compared:
        metrics |= action_match(algorithm, learner.algorithm, collected, key)
    learner = learner._replace(algorithm=state, episode_return=total, episode_length=length)
    return learner, metrics | episodes
