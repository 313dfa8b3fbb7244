"""Phases in JAX: many rollouts and updates as one program, and random env steps before learning."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.interface import Algorithm, Metrics, State
from backflip.core.replay.rows import add
from backflip.core.types import Extra, Transition
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
from backflip.drivers.learning import (
    layout_of,
    learning_of,
    random_rollouts,
    replay_of,
)
from backflip.drivers.native_rollout import collect, finish_episodes
from backflip.drivers.seeds import over_seeds
from backflip.drivers.thinning import thin, updates_per_record
from backflip.drivers.waiting import wait_for
from backflip.envs.random_actions import random_actions
from backflip.envs.spec import NativeEnv

MetricsOfUpdates = dict[str, Float[Array, " updates"]]

LARGEST_ESTIMATE = 0.95  # of a running phase, reported as done


def compile_phase(
    env: NativeEnv,
    algorithm: Algorithm,
    *,
    updates: int,
    reward: RewardFunction,
    record_rollouts: int,
    record_envs: int,
) -> RunPhase:
    """Compile `updates` updates into one function of (learners, reward parameters), per seed.

    The last `record_rollouts` rollouts of the first `record_envs` environments are returned.
    """
    learn = learning_of(env.spec, algorithm, reward)

    def cycle(
        parameters: RewardParameters, recorded: bool, learner: Learner, _: None
    ) -> tuple[Learner, tuple[Metrics, Transition | None]]:
        key, act_key, update_key = jax.random.split(jax.random.wrap_key_data(learner.key), 3)
        learner, batch = collect(env, algorithm, learner, act_key, recorded=recorded)
        learner, episodes = finish_episodes(learner, batch)
        kept = clip_material(env.spec, batch, record_envs) if recorded else None
        if kept is not None and algorithm.restarts:
            kept = cut_after(kept)
        learner, metrics = learn(learner, batch._replace(scene=()), update_key, parameters)
        return learner._replace(key=jax.random.key_data(key)), (metrics | episodes, kept)

    def run(
        learner: Learner, parameters: RewardParameters
    ) -> tuple[Learner, tuple[MetricsOfUpdates, Transition | None]]:
        plain = partial(cycle, parameters, False)
        learner, (metrics, _) = jax.lax.scan(plain, learner, length=updates - record_rollouts)
        if not record_rollouts:
            return learner, (metrics, None)
        recorded = partial(cycle, parameters, True)
        learner, (more, record) = jax.lax.scan(recorded, learner, length=record_rollouts)
        return learner, (
            jax.tree.map(_append, metrics, more),
            jax.tree.map(_join_rollouts, record),
        )

    return _reporting(over_seeds(run, donate=(0,)), updates, algorithm.rollout_length)


def _reporting(run: Callable[..., Any], updates: int, rollout_length: int) -> RunPhase:
    """Return a phase that limits the records of its metrics and reports progress.

    A compiled program does not report its progress, so `on_progress` gets an estimate.
    """
    every, seconds_before, in_all = updates_per_record(updates), 0.0, updates * rollout_length

    def run_phase(
        learners: Learner,
        parameters: RewardParameters,
        on_progress: OnEnvSteps = ignore_progress,
        on_update: OnUpdate = ignore_progress,
    ) -> tuple[Learner, Phase]:
        nonlocal seconds_before
        expected = seconds_before

        def meanwhile(seconds: float) -> None:
            """Report the env steps expected by now if this phase is as fast as the last one."""
            share = min(seconds / expected, LARGEST_ESTIMATE) if expected else 0.0
            on_progress(int(in_all * share))

        running = run(learners, parameters)  # returns at once, but compiles the first time
        began = time.perf_counter()
        learners, (metrics, record) = wait_for(running, meanwhile)
        seconds_before = time.perf_counter() - began
        on_update(updates, learners.algorithm)
        return learners, Phase(thin(metrics, every), record, every)

    return run_phase


def compile_fill_replay(
    env: NativeEnv, algorithm: Algorithm
) -> Callable[[Learner], tuple[Learner]]:
    """Compile the random env steps before learning into a function of learners."""
    layout = layout_of(env.spec, algorithm)
    rollouts = random_rollouts(algorithm)

    def act(state: State, obs: Array, key: PRNGKeyArray) -> tuple[Array, Extra]:
        del state, obs
        return random_actions(env.spec.action, key, algorithm.num_envs), ()

    random_policy = algorithm._replace(act=act)

    def rollout(learner: Learner, key: PRNGKeyArray) -> tuple[Learner, None]:
        learner, batch = collect(env, random_policy, learner, key, recorded=False)
        learner, _ = finish_episodes(learner, batch)
        return learner._replace(replay=add(layout, replay_of(learner), batch)), None

    def run(learner: Learner) -> tuple[Learner]:
        key, rest = jax.random.split(jax.random.wrap_key_data(learner.key))
        learner, _ = jax.lax.scan(rollout, learner, jax.random.split(rest, rollouts))
        return (learner._replace(key=jax.random.key_data(key)),)

    return over_seeds(run, donate=(0,))


def _append(before: Array, after: Array) -> Array:
    return jnp.concatenate([before, after])


def _join_rollouts(x: Array) -> Array:
    """Return (R, T, ...) as one stretch of time, (R T, ...)."""
    return x.reshape(-1, *x.shape[2:])
