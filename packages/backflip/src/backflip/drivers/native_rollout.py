"""A rollout in JAX: T env steps of N environments, and its episode metrics."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from backflip.algorithms.interface import Algorithm, Metrics
from backflip.core.colored_noise import keys_of_octaves
from backflip.core.trees import where_rows
from backflip.core.types import Transition
from backflip.drivers.driver import EnvStates, Learner
from backflip.drivers.episodes import episode_metrics, episode_totals
from backflip.drivers.training_episodes import whole_episodes
from backflip.envs.spec import HasScene, NativeEnv, NativeStep, step_within_bounds

NOISE = 0x0C7A7E


def collect(
    env: NativeEnv, algorithm: Algorithm, learner: Learner, key: PRNGKeyArray, *, recorded: bool
) -> tuple[Learner, Transition]:
    """Return the learner after T env steps in N environments, and the transitions (T, N).

    The transitions have scenes if `recorded`.
    """
    count = algorithm.num_envs
    observe = jax.vmap(env.observe)
    step_rows = jax.vmap(partial(step_within_bounds, env))

    def step(carry: tuple[Any, ...], keys: tuple[Any, Any]) -> tuple[tuple[Any, ...], Transition]:
        (state, obs, age), (key, noise_keys) = carry, keys
        scene = scenes_of(env, state) if recorded else ()
        act_key, step_key, reset_key = jax.random.split(key, 3)
        if noise_keys is not None:
            act_key = noise_keys
        action, extra = algorithm.act(learner.algorithm, obs, act_key)
        moved = step_rows(state, action, jax.random.split(step_key, count))
        moved = _shortened(algorithm, moved, age + 1)
        ended = moved.terminated | moved.truncated

        def reset_ended() -> EnvStates:
            fresh = jax.vmap(env.reset)(jax.random.split(reset_key, count))
            return where_rows(ended, fresh, moved.state)

        # With a plain `where`, XLA recomputes the reset for every element of the observation.
        state = jax.lax.cond(ended.any(), reset_ended, lambda: moved.state)
        following = observe(state)
        # Drawing pixels is slow: successors are drawn separately only if some episode ended.
        next_obs = jax.lax.cond(ended.any(), lambda: observe(moved.state), lambda: following)
        row = Transition(
            obs=obs,
            action=action,
            reward=moved.reward,
            terminated=moved.terminated,
            truncated=moved.truncated,
            next_obs=next_obs,
            valid=jnp.ones(count, bool),
            extra=extra,
            scene=scene,
        )
        return (state, following, jnp.where(ended, 0, age + 1)), row

    if algorithm.restarts:
        key, start_key = jax.random.split(key)
        learner = _with_fresh_episodes(env, learner, jax.random.split(start_key, count))
    first = (learner.env, observe(learner.env), learner.episode_length)
    keys, noise_keys = jax.random.split(key, algorithm.rollout_length), None
    if algorithm.noise_octaves:
        noise_key = jax.random.fold_in(key, NOISE)
        noise_keys = keys_of_octaves(noise_key, algorithm.rollout_length, algorithm.noise_octaves)
    (state, _, _), batch = jax.lax.scan(step, first, (keys, noise_keys))
    return learner._replace(env=state), batch


def _shortened(algorithm: Algorithm, moved: NativeStep, age: Float[Array, " N"]) -> NativeStep:
    """Return the results of an env step, truncated at the algorithm's own limit of episodes."""
    if not algorithm.episode_steps:
        return moved
    shortened = ~whole_episodes(age.shape[0], algorithm.whole_share)
    late = shortened & (age >= algorithm.episode_steps) & ~moved.terminated
    return moved._replace(truncated=moved.truncated | late)


def _with_fresh_episodes(env: NativeEnv, learner: Learner, keys: Array) -> Learner:
    zeros = jnp.zeros(keys.shape[0])
    return learner._replace(
        env=jax.vmap(env.reset)(keys), episode_return=zeros, episode_length=zeros
    )


def scenes_of(env: NativeEnv, states: EnvStates) -> Any:
    """Return the numbers (N, S) to draw N states from; `()` if observations suffice."""
    return jax.vmap(env.scene)(states) if isinstance(env, HasScene) else ()


def finish_episodes(learner: Learner, batch: Transition) -> tuple[Learner, Metrics]:
    """Return the learner with updated running returns and lengths, and episode metrics.

    The metrics are those of the episodes that ended in the batch (T, N).
    """
    total, length, returns, lengths = episode_totals(
        learner.episode_return, learner.episode_length, batch
    )
    ended = (batch.terminated | batch.truncated) & batch.valid
    learner = learner._replace(episode_return=total, episode_length=length)
    return learner, episode_metrics(returns, lengths, ended)
