"""Transitions of a random policy in JAX, from which the first clips are cut."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from backflip.core.trees import where_rows
from backflip.core.types import Transition
from backflip.drivers.clip_material import clip_material
from backflip.drivers.native_rollout import scenes_of
from backflip.drivers.seeds import over_seeds
from backflip.envs.random_actions import random_actions
from backflip.envs.spec import NativeEnv


def compile_random_play(
    env: NativeEnv, envs: int, env_steps: int
) -> Callable[..., tuple[Transition]]:
    """Compile `Driver.random_record` into a function of (keys, repeat), per seed."""
    observe = jax.vmap(env.observe)

    def play(key_data: Array, repeat: Array) -> tuple[Transition]:
        first, reset, rest = jax.random.split(jax.random.wrap_key_data(key_data), 3)
        states = jax.vmap(env.reset)(jax.random.split(reset, envs))
        carry = (states, random_actions(env.spec.action, first, envs))

        def step(carry: tuple[Any, Array], key: PRNGKeyArray) -> tuple[Any, Transition]:
            state, action = carry
            keys = jax.random.split(key, 4)
            moved = jax.vmap(env.step)(state, action, jax.random.split(keys[0], envs))
            ended = moved.terminated | moved.truncated
            row = Transition(
                obs=observe(state),
                action=action,
                reward=moved.reward,
                terminated=moved.terminated,
                truncated=moved.truncated,
                next_obs=observe(moved.state),
                valid=jnp.ones(envs, bool),
                extra=(),
                scene=scenes_of(env, state),
            )
            fresh = jax.vmap(env.reset)(jax.random.split(keys[1], envs))
            again = jax.random.uniform(keys[2], (envs,)) < repeat
            action = where_rows(again, action, random_actions(env.spec.action, keys[3], envs))
            return (where_rows(ended, fresh, moved.state), action), clip_material(
                env.spec, row, envs
            )

        return (jax.lax.scan(step, carry, jax.random.split(rest, env_steps))[1],)

    return over_seeds(play)
