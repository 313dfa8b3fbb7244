"""Evaluation in JAX: new episodes side by side, until the last one ends."""

import time
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from backflip.algorithms.interface import Algorithm, State
from backflip.drivers.driver import EnvStates, Evaluation, OnEpisodes
from backflip.drivers.seeds import over_seeds
from backflip.drivers.waiting import wait_for
from backflip.envs.spec import KnowsOptimum, NativeEnv, step_within_bounds

FIRST_PART = 16  # env steps of each episode
SECONDS_OF_PART = 0.5


@runtime_checkable
class Evaluate(Protocol):
    """Plays new episodes with the policies of all seeds."""

    def __call__(self, states: State, keys: Any, on_progress: OnEpisodes, /) -> Evaluation:
        """Return what the episodes were like."""
        ...


class _Episodes(NamedTuple):
    """State of E episodes.

    Attributes:
        time: env steps so far.
        states: of the environments.
        alive: the episode has not ended.
        returns: true reward so far.
        lengths: env steps of the episode so far.
    """

    time: Int[Array, ""]
    states: EnvStates
    alive: Bool[Array, " E"]
    returns: Float[Array, " E"]
    lengths: Float[Array, " E"]


def compile_evaluation(env: NativeEnv, algorithm: Algorithm, episodes: int) -> Evaluate:
    """Compile an evaluation into a function of (algorithm states, keys, on_progress), per seed.

    A compiled program cannot report its progress, so the episodes are played in parts, and progress
    is reported after each. A part has twice as many env steps as the one before, until it takes
    `SECONDS_OF_PART`.
    """
    limit = env.spec.longest_episode
    begin = over_seeds(partial(_begin, env, episodes, limit))
    play = over_seeds(partial(_play, env, algorithm))

    def evaluate(states: State, keys: Any, on_progress: OnEpisodes) -> Evaluation:
        played, step_keys, optimum = wait_for(begin(keys))
        end, part = 0, FIRST_PART
        while end < limit and np.asarray(played.alive).any():
            ended, env_steps = int((~np.asarray(played.alive)).sum()), int(played.lengths.sum())
            report = partial(on_progress, ended, env_steps)
            report()
            end = min(end + part, limit)
            running = play(states, step_keys, played, np.full(len(keys), end, np.int32))
            began = time.perf_counter()
            (played,) = wait_for(running, lambda _, report=report: report())
            part *= 2 if time.perf_counter() - began < SECONDS_OF_PART else 1
        found = played.returns, played.lengths, optimum, played.alive
        return Evaluation(*map(np.asarray, found))

    return evaluate


def _begin(
    env: NativeEnv, episodes: int, limit: int, key_data: Array
) -> tuple[_Episodes, Array, Array]:
    """Return new episodes, raw keys for up to `limit` env steps, and the best possible returns."""
    key, reset = jax.random.split(jax.random.wrap_key_data(key_data))
    starts = jax.vmap(env.reset)(jax.random.split(reset, episodes))
    keys = jax.random.key_data(jax.random.split(key, limit))
    zeros = jnp.zeros(episodes)
    first = _Episodes(jnp.zeros((), jnp.int32), starts, jnp.ones(episodes, bool), zeros, zeros)
    return first, keys, _optimum(env, starts, episodes)


def _play(
    env: NativeEnv,
    algorithm: Algorithm,
    state: State,
    keys: Array,
    played: _Episodes,
    end: Int[Array, ""],
) -> tuple[_Episodes]:
    """Return the episodes after `end` env steps in all, or when all of them have ended."""
    step_rows = jax.vmap(partial(step_within_bounds, env))
    episodes = played.alive.shape[0]

    def unfinished(played: _Episodes) -> Bool[Array, ""]:
        return played.alive.any() & (played.time < end)

    def step(played: _Episodes) -> _Episodes:
        act_key, step_key = jax.random.split(jax.random.wrap_key_data(keys[played.time]))
        action = algorithm.evaluation_action(state, jax.vmap(env.observe)(played.states), act_key)
        moved = step_rows(played.states, action, jax.random.split(step_key, episodes))
        return _Episodes(
            played.time + 1,
            moved.state,
            played.alive & ~(moved.terminated | moved.truncated),
            played.returns + jnp.where(played.alive, moved.reward, 0.0),
            played.lengths + played.alive.astype(jnp.float32),
        )

    return (jax.lax.while_loop(unfinished, step, played),)


def _optimum(env: NativeEnv, starts: EnvStates, episodes: int) -> Any:
    """Return the best possible returns from `starts`; NaN if the environment does not know them."""
    if isinstance(env, KnowsOptimum):
        return jax.vmap(env.optimum)(starts)
    return jnp.full(episodes, jnp.nan)
