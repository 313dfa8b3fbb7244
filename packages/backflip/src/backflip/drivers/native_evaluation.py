"""Evaluation in JAX: new episodes side by side, until the last one ends."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from backflip.algorithms.interface import Algorithm, State
from backflip.drivers.driver import LONGEST_EPISODE, EnvStates
from backflip.drivers.seeds import over_seeds
from backflip.envs.spec import KnowsOptimum, NativeEnv, step_within_bounds


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


def compile_evaluation(
    env: NativeEnv, algorithm: Algorithm, episodes: int
) -> Callable[..., tuple[Array, Array, Array]]:
    """Compile an evaluation into a function of (algorithm states, keys), per seed.

    It returns true returns, lengths and best possible returns, each (seeds, episodes).
    """
    limit = env.spec.max_episode_steps or LONGEST_EPISODE
    step_rows = jax.vmap(partial(step_within_bounds, env))

    def play(state: State, key_data: Array) -> tuple[Array, Array, Array]:
        key, reset = jax.random.split(jax.random.wrap_key_data(key_data))
        starts = jax.vmap(env.reset)(jax.random.split(reset, episodes))
        keys = jax.random.split(key, limit)

        def unfinished(played: _Episodes) -> Bool[Array, ""]:
            return played.alive.any() & (played.time < limit)

        def step(played: _Episodes) -> _Episodes:
            act_key, step_key = jax.random.split(keys[played.time])
            action = algorithm.evaluation_action(
                state, jax.vmap(env.observe)(played.states), act_key
            )
            moved = step_rows(played.states, action, jax.random.split(step_key, episodes))
            return _Episodes(
                played.time + 1,
                moved.state,
                played.alive & ~(moved.terminated | moved.truncated),
                played.returns + jnp.where(played.alive, moved.reward, 0.0),
                played.lengths + played.alive.astype(jnp.float32),
            )

        zeros = jnp.zeros(episodes)
        first = _Episodes(jnp.zeros((), jnp.int32), starts, jnp.ones(episodes, bool), zeros, zeros)
        played = jax.lax.while_loop(unfinished, step, first)
        return played.returns, played.lengths, _optimum(env, starts, episodes)

    return over_seeds(play)


def _optimum(env: NativeEnv, starts: EnvStates, episodes: int) -> Any:
    """Return the best possible returns from `starts`; NaN if the environment does not know them."""
    if isinstance(env, KnowsOptimum):
        return jax.vmap(env.optimum)(starts)
    return jnp.full(episodes, jnp.nan)
