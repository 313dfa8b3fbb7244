"""EPIC and DARD distance of a learned reward to the true reward of an environment in JAX.

Coverage is random play: uniform actions from the first states on. The true reward is that of the
env step from a state with an action, whichever next state it is asked about.
"""

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from backflip.core.trees import where_rows
from backflip.core.types import Transition
from backflip.envs.random_actions import random_actions
from backflip.envs.registry import make_native
from backflip.envs.spec import NativeEnv, step_within_bounds
from backflip.rewards.distances import (
    Transitions,
    dard_canonical,
    epic_canonical,
    pearson_distance,
    take,
)
from backflip.rewards.interface import RewardModel

ENVS, ENV_STEPS = 16, 64  # of random play
COVERED, SAMPLES = 256, 32  # transitions, and samples of each expectation
IMAGES_COVERED, IMAGES_SAMPLES = 64, 16
DISCOUNT = 0.99
DISTANCES = "epic", "dard"
_KEY = 0xE91C


@final
class RewardDistances:
    """Measures the distances of learned rewards; one program serves all seeds of a run.

    Args:
        env_id: the environment's id.
        env_args: its arguments.
        model: the reward model.
    """

    def __init__(self, env_id: str, env_args: Mapping[str, Any], model: RewardModel) -> None:
        env = make_native(env_id, env_args)
        self._shaped = None if env is None else jax.jit(partial(_canonical, env, model))

    def of(self, parameters: Any) -> dict[str, float | None]:
        """Return the distances of one seed's parameters.

        All are None outside JAX. One is None if one of its rewards is constant.
        """
        if self._shaped is None:
            return dict.fromkeys(DISTANCES)
        shaped = self._shaped(jax.random.key(_KEY), parameters)
        one, other = (jax.tree.map(np.asarray, x) for x in shaped)
        return {name: pearson_distance(one[name], other[name]) for name in DISTANCES}


def _canonical(
    env: NativeEnv, model: RewardModel, key: PRNGKeyArray, parameters: Any
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the transformed true and learned reward, by the name of the distance."""
    keys = jax.random.split(key, 5)
    pixels = env.spec.is_image
    n, m = (IMAGES_COVERED, IMAGES_SAMPLES) if pixels else (COVERED, SAMPLES)
    every = _random_play(env, keys[0])
    chosen = jax.random.choice(keys[1], ENVS * ENV_STEPS, (n,), replace=False)
    covered: Transitions = take(every, chosen)
    others = jax.random.choice(keys[2], ENVS * ENV_STEPS, (m,), replace=False)
    states = take(every.next_state, others)
    actions = random_actions(env.spec.action, keys[3], m)

    step = stepper(env, keys[4])

    def true(state: Any, action: Any, next_state: Any) -> Array:
        del next_state
        return step(state, action).reward

    def learned(state: Any, action: Any, next_state: Any) -> Array:
        before, after = (jax.vmap(env.observe)(x)[None] for x in (state, next_state))
        none = jnp.zeros((1, len(action)))
        batch = Transition(
            obs=before,
            action=action[None],
            reward=none,
            terminated=none > 0,
            truncated=none > 0,
            next_obs=after,
            valid=none == 0,
            extra=(),
        )
        return model.predict(parameters, batch)[0]

    def both(reward: Any) -> dict[str, Array]:
        return {
            "epic": epic_canonical(reward, covered, states, actions, DISCOUNT),
            "dard": dard_canonical(
                reward, covered, lambda s, a: step(s, a).state, actions, DISCOUNT
            ),
        }

    return both(true), both(learned)


def stepper(env: NativeEnv, key: PRNGKeyArray) -> Callable[[Any, Any], Any]:
    """Return a function that steps batches of states and actions, with new draws in each call.

    So S' and S'' of DARD are independent given the action.
    """
    calls = itertools.count()

    def step(state: Any, action: Any) -> Any:
        drawn = jax.random.split(jax.random.fold_in(key, next(calls)), len(action))
        return jax.vmap(partial(step_within_bounds, env))(state, action, drawn)

    return step


def _random_play(env: NativeEnv, key: PRNGKeyArray) -> Transitions:
    """Return the transitions of uniform actions, of all environments along one axis."""
    first, rest = jax.random.split(key)
    begun = jax.vmap(env.reset)(jax.random.split(first, ENVS))

    def play(states: Any, key: PRNGKeyArray) -> tuple[Any, Transitions]:
        keys = jax.random.split(key, 3)
        action = random_actions(env.spec.action, keys[0], ENVS)
        moved = jax.vmap(partial(step_within_bounds, env))(
            states, action, jax.random.split(keys[1], ENVS)
        )
        fresh = jax.vmap(env.reset)(jax.random.split(keys[2], ENVS))
        ended = moved.terminated | moved.truncated
        return where_rows(ended, fresh, moved.state), Transitions(states, action, moved.state)

    _, played = jax.lax.scan(play, begun, jax.random.split(rest, ENV_STEPS))

    def together(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:])

    return jax.tree.map(together, played)
