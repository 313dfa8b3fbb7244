"""The random policy outside JAX: random env steps before learning, and transitions for clips."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.core.types import Transition
from backflip.drivers.clip_material import clip_material
from backflip.drivers.driver import RANDOM_POLICY, Learner, OnEnvSteps
from backflip.drivers.host_learning import add_rollout
from backflip.drivers.host_stepping import (
    cut_at_end,
    env_seeds,
    plan_pictures,
    stack_steps,
    step_all,
)
from backflip.drivers.learning import layout_of, random_rollouts, replay_of
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.spec import HostEnv

FILL_REPLAY = 0x3A8A0000


def fill_replay_on_host(
    env: HostEnv, algorithm: Algorithm, learners: Learner, on_progress: OnEnvSteps
) -> Learner:
    """Return the learners with random env steps in their replay, which is written in place."""
    keys = np.asarray(learners.key)
    layout = layout_of(env.spec, algorithm, len(keys))
    entropy = [[FILL_REPLAY, *key.tolist()] for key in keys]
    obs = env.reset(env_seeds(np.array(entropy), algorithm.num_envs))
    actions = _uniform(env, entropy, algorithm.num_envs)
    rollouts, length = random_rollouts(algorithm), algorithm.rollout_length
    for rollout in range(rollouts):
        rows: list[Transition] = []
        for step in range(length):
            row, obs = step_all(env, obs, next(actions), drawn=None)
            rows.append(row)
            on_progress(rollout * length + step + 1)
        batch = cut_at_end(stack_steps(rows), rollout == rollouts - 1)
        add_rollout(layout, replay_of(learners), batch)
    return learners


def random_record_on_host(
    env: HostEnv,
    seeds: Sequence[int],
    env_steps: int,
    repeat: float,
    pictures: int,
    on_progress: OnEnvSteps,
) -> Transition:
    """Return transitions of a random policy, (seeds, env_steps, envs, ...).

    Invalid rows, on which an environment only reset, are included and marked. Environments that
    draw themselves draw at most about `pictures` of each seed.
    """
    envs = env.num_envs // len(seeds)
    plan = plan_pictures(env, len(seeds), envs, env_steps, pictures)
    entropy = [[RANDOM_POLICY, seed] for seed in seeds]
    obs = env.reset(env_seeds(np.array(entropy), envs))
    actions = _sticky(env, entropy, envs, repeat)
    rows: list[Transition] = []
    for number in range(env_steps):
        row, obs = step_all(env, obs, next(actions), drawn=plan.at(number))
        on_progress(number + 1)
        # Copies: a view of the newest frame would keep the whole stack in memory.
        rows.append(jax.tree.map(np.copy, clip_material(env.spec, row, envs)))
    return stack_steps(rows)


def _uniform(env: HostEnv, entropy: list[list[int]], count: int) -> Iterator[np.ndarray]:
    """Yield actions (S, N, ...), uniform over the action space."""
    draws = [np.random.default_rng(numbers) for numbers in entropy]
    while True:
        yield _drawn(env, draws, count)


def _sticky(
    env: HostEnv, entropy: list[list[int]], count: int, repeat: float
) -> Iterator[np.ndarray]:
    """Yield actions (S, N, ...), each equal to the previous one with probability `repeat`."""
    draws = [np.random.default_rng(numbers) for numbers in entropy]
    action = _drawn(env, draws, count)
    while True:
        yield action
        fresh = _drawn(env, draws, count)
        again = np.stack([rng.random(count) < repeat for rng in draws])
        action = np.where(again.reshape(*again.shape, *(1,) * (action.ndim - 2)), action, fresh)


def _drawn(env: HostEnv, draws: Sequence[np.random.Generator], count: int) -> Any:
    return np.stack([random_actions_on_host(env.spec.action, rng, count) for rng in draws])
