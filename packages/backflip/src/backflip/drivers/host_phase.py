"""Phases outside JAX: rollouts of all seeds' environments, and what is learned from each."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from backflip.algorithms.interface import Algorithm, State
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.acting import HostPolicy
from backflip.drivers.clip_material import clip_material
from backflip.drivers.driver import (
    Learner,
    OnEnvSteps,
    Phase,
    RewardFunction,
    RewardParameters,
    RunPhase,
    ignore_progress,
)
from backflip.drivers.host_learning import learning_on_host
from backflip.drivers.host_stepping import by_seed, env_seeds, stack_steps, step_all
from backflip.drivers.thinning import Records, updates_per_record
from backflip.envs.spec import HostEnv


def prepare_phase(
    spec: EnvSpec,
    algorithm: Algorithm,
    open_env: Callable[[int], HostEnv],
    policy: HostPolicy,
    *,
    updates: int,
    reward: RewardFunction,
    record_rollouts: int,
    record_envs: int,
) -> RunPhase:
    """Return a function of (learners, reward parameters) that does `updates` updates.

    Args:
        spec: of the environment.
        algorithm: what learns.
        open_env: returns a batch of so many environments.
        policy: how to act.
        updates: of the phase.
        reward: what is learned from.
        record_rollouts: the last rollouts, which are returned whole.
        record_envs: of the first environments.
    """
    learn = learning_on_host(spec, algorithm, reward)
    every, length = updates_per_record(updates), algorithm.rollout_length
    split = jax.jit(jax.vmap(partial(_split, length), out_axes=(0, 1, 0)))

    def run(
        learners: Learner, parameters: RewardParameters, tell: OnEnvSteps = ignore_progress
    ) -> tuple[Learner, Phase]:
        env = open_env(learners.key.shape[0] * algorithm.num_envs)
        learners, obs = _with_fresh_episodes(env, learners)
        metrics, kept = Records(every), list[Transition]()
        for update in range(updates):
            key, act_keys, update_key = map(np.asarray, split(learners.key))
            if algorithm.restarts and update:
                learners, obs = _with_fresh_episodes(env, learners)
            recorded, last = update >= updates - record_rollouts, update == updates - 1
            tell_of_step = partial(_tell_of_more, tell, update * length)
            acting = partial(_collect, env, policy, learners.algorithm, recorded=recorded)
            obs, batch = acting(obs, act_keys, tell_of_step)
            if recorded:
                kept.append(clip_material(spec, batch, record_envs))
            cut = last and not algorithm.restarts  # whose rollouts all end so
            learners, measured = learn(
                learners, batch._replace(scene=()), update_key, cut, parameters
            )
            learners = learners._replace(key=key)
            metrics.append(measured)
            tell((update + 1) * length)
        return learners, Phase(metrics.joined(), _join_rollouts(kept), every)

    return run


def _with_fresh_episodes(env: HostEnv, learners: Learner) -> tuple[Learner, np.ndarray]:
    """Return the learners at the start of new episodes, and the first observations of these."""
    keys = np.asarray(learners.key)
    count = env.num_envs // len(keys)
    zeros = np.zeros((len(keys), count), np.float32)
    obs = env.reset(env_seeds(keys, count))
    return learners._replace(episode_return=zeros, episode_length=zeros), obs


def _collect(
    env: HostEnv,
    policy: HostPolicy,
    states: State,
    obs: np.ndarray,
    act_keys: np.ndarray,
    tell: OnEnvSteps,
    *,
    recorded: bool,
) -> tuple[np.ndarray, Transition]:
    """Return the observations after T env steps, and the transitions (S, T, N).

    `tell` is told of each env step but the last.
    """
    seeds = act_keys.shape[1]
    act = policy.of(states, by_seed(obs, seeds), act_keys[0])
    rows: list[Transition] = []
    for number, keys in enumerate(act_keys):
        if number:
            tell(number)
        action, extra = act(by_seed(obs, seeds), keys)
        row, obs = step_all(env, obs, np.asarray(action), recorded=recorded)
        rows.append(row._replace(extra=jax.tree.map(np.asarray, extra)))
    return obs, stack_steps(rows)


def _split(env_steps: int, key_data: Array) -> tuple[Array, Array, Array]:
    """Return raw key data: the learner's next, one per env step, one for the update."""
    key, act, update = jax.random.split(jax.random.wrap_key_data(key_data), 3)
    data = jax.random.key_data
    return data(key), data(jax.random.split(act, env_steps)), data(update)


def _join_rollouts(kept: list[Transition]) -> Transition | None:
    def join(*rollouts: Any) -> np.ndarray:
        return np.concatenate(rollouts, 1)

    return jax.tree.map(join, *kept) if kept else None


def _tell_of_more(tell: OnEnvSteps, before: int, env_steps: int) -> None:
    """OnEnvSteps of env steps, and of those before them."""
    tell(before + env_steps)
