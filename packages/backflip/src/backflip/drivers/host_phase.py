"""Phases outside JAX: rollouts in the environments of all seeds, and learning from each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from backflip.algorithms.interface import Algorithm, State
from backflip.core.colored_noise import keys_of_octaves
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.clip_material import clip_material, cut_after
from backflip.drivers.driver import (
    Learner,
    OnEnvSteps,
    OnUpdate,
    Phase,
    RewardFunction,
    RewardParameters,
    RunPhase,
    ignore_progress,
)
from backflip.drivers.host_learning import learning_on_host
from backflip.drivers.host_policy import HostPolicy
from backflip.drivers.host_stepping import (
    by_seed,
    env_seeds,
    plan_pictures,
    stack_steps,
    step_all,
)
from backflip.drivers.thinning import Records, updates_per_record
from backflip.drivers.training_episodes import shorten_episodes
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
    pictures: int,
) -> RunPhase:
    """Return a function of (learners, reward parameters) that does `updates` updates.

    Args:
        spec: of the environment.
        algorithm: the configured algorithm.
        open_env: (number of rows) -> a batch of that many environments.
        policy: how to act.
        updates: of the phase.
        reward: the reward to learn from.
        record_rollouts: how many of the last rollouts to return.
        record_envs: how many of the first environments to return.
        pictures: most pictures of each seed, of environments that draw themselves.
    """
    learning = learning_on_host(spec, algorithm, reward)
    every, length = updates_per_record(updates), algorithm.rollout_length
    octaves = algorithm.noise_octaves
    split = jax.jit(jax.vmap(partial(_split, length, octaves), out_axes=(0, 1, 0)))

    def run(
        learners: Learner,
        parameters: RewardParameters,
        on_progress: OnEnvSteps = ignore_progress,
        on_update: OnUpdate = ignore_progress,
    ) -> tuple[Learner, Phase]:
        seeds = learners.key.shape[0]
        env = open_env(seeds * algorithm.num_envs)
        plan = plan_pictures(env, seeds, record_envs, record_rollouts * length, pictures)
        learners, obs = _with_fresh_episodes(env, learners)
        learners = shorten_episodes(env, spec, algorithm, learners)
        metrics, kept = Records(every), list[Transition]()
        learn = learning(learners, parameters)
        for update in range(updates):
            key, act_keys, update_key = map(np.asarray, split(learners.key))
            if algorithm.restarts and update:
                learners, obs = _with_fresh_episodes(env, learners)
            record, last = update - (updates - record_rollouts), update == updates - 1
            obs, batch = _collect(
                env,
                policy,
                learners.algorithm,
                obs,
                act_keys,
                drawn=[plan.at(record * length + step) for step in range(length)]
                if record >= 0
                else None,
                env_steps_before=update * length,
                on_progress=on_progress,
            )
            if record >= 0:
                seen = clip_material(spec, batch, record_envs)
                kept.append(cut_after(seen) if algorithm.restarts else seen)
            cut = last and not algorithm.restarts  # with `restarts`, all rollouts end like this
            learners, measured = learn(learners, batch._replace(scene=()), update_key, cut)
            learners = learners._replace(key=key)
            metrics.append(measured)
            on_update(update + 1, learners.algorithm)
            on_progress((update + 1) * length)
        return learners, Phase(metrics.joined(), _join_rollouts(kept), every)

    return run


def _with_fresh_episodes(env: HostEnv, learners: Learner) -> tuple[Learner, np.ndarray]:
    """Return the learners at the start of new episodes, and the first observations."""
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
    *,
    drawn: Sequence[Sequence[int]] | None,
    env_steps_before: int,
    on_progress: OnEnvSteps,
) -> tuple[np.ndarray, Transition]:
    """Return the observations after T env steps, and the transitions (S, T, N).

    `drawn` has the rows to draw at each env step, or is None for a rollout that is not recorded.
    `on_progress` is called before each env step but the first.
    """
    seeds = act_keys.shape[1]
    act = policy.of(states, by_seed(obs, seeds), act_keys[0])
    rows: list[Transition] = []
    for number, keys in enumerate(act_keys):
        if number:
            on_progress(env_steps_before + number)
        action, extra = act(by_seed(obs, seeds), keys)
        shown = None if drawn is None else drawn[number]
        row, obs = step_all(env, obs, np.asarray(action), drawn=shown)
        rows.append(row._replace(extra=jax.tree.map(np.asarray, extra)))
    return obs, stack_steps(rows)


def _split(env_steps: int, octaves: int, key_data: Array) -> tuple[Array, Array, Array]:
    """Return raw key data: the learner's next key, those to act with, and one for the update.

    There is one key for each env step, or K with K octaves of noise.
    """
    key, act, update = jax.random.split(jax.random.wrap_key_data(key_data), 3)
    data, split = jax.random.key_data, jax.random.split
    acts = keys_of_octaves(act, env_steps, octaves) if octaves else split(act, env_steps)
    return data(key), data(acts), data(update)


def _join_rollouts(kept: list[Transition]) -> Transition | None:
    def join(*rollouts: Any) -> np.ndarray:
        return np.concatenate(rollouts, 1)

    return jax.tree.map(join, *kept) if kept else None
