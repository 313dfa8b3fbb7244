"""Conformance suite of `NativeEnv`: tests call `check_native_env` with one environment.

A clause fails if the rollout never exercises it, for example if no episode ends in a way that the
caller names.
"""

import functools
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeEnv, NativeStep

ROWS = 4


class Rollout(NamedTuple):
    """Rollout of random actions in `ROWS` environments with resets; axes (T, N)."""

    state: Any
    obs: Any
    action: Any
    key: Any
    step: NativeStep
    next_obs: Any


def random_actions(spec: EnvSpec, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return uniform actions; those of a box exceed its bounds by up to a half."""
    if isinstance(spec.action, Discrete):
        return rng.integers(spec.action.n, size=shape, dtype=np.int32)
    low, high = spec.action.low, spec.action.high
    beyond = (high - low) / 4
    return rng.uniform(low - beyond, high + beyond, (*shape, *low.shape)).astype(np.float32)


def roll_out(env: NativeEnv, env_steps: int, seed: int = 0) -> Rollout:
    """Return the rollout of random actions."""
    rng = np.random.default_rng(seed)
    actions = jnp.asarray(random_actions(env.spec, rng, (env_steps, ROWS)))
    keys = jax.random.split(jax.random.key(seed), (env_steps + 1, ROWS, 2))
    return jax.tree.map(np.asarray, _runner(env)(keys, actions))


@functools.cache
def _runner(env: NativeEnv) -> Callable[[Any, Any], Rollout]:
    def one(state: Any, now: tuple[Any, Any]) -> tuple[Any, Rollout]:
        action, (step_key, reset_key) = now
        step = env.step(state, action, step_key)
        done = step.terminated | step.truncated
        drawn = jax.random.key_data(step_key)
        row = Rollout(state, env.observe(state), action, drawn, step, env.observe(step.state))
        fresh = env.reset(reset_key)
        return jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, step.state), row

    def run(keys: Any, actions: Any) -> Rollout:
        start = jax.vmap(env.reset)(keys[0, :, 0])
        return jax.lax.scan(jax.vmap(one), start, (actions, (keys[1:, :, 0], keys[1:, :, 1])))[1]

    return jax.jit(run)


def check_native_env(
    env: NativeEnv,
    *,
    ends_by: Collection[str],
    env_steps: int,
    random_starts: bool,
    earliest_cut: int | None = None,
) -> None:
    """Assert every clause of the interface.

    Args:
        env: the environment.
        ends_by: how episodes end under random actions: `terminated`, `truncated` or both.
        env_steps: env steps per row.
        random_starts: whether there is more than one initial state.
        earliest_cut: the least number of env steps before truncation, if the limit counts something
            else; by default `max_episode_steps`.
    """
    check_spec(env)
    rollout = roll_out(env, env_steps)
    check_types(env, rollout)
    check_bounds(env, rollout)
    check_ends(env, rollout, ends_by, earliest_cut)
    check_one_row_alone(env, rollout)
    check_starts(env, random_starts)
    check_repeats(rollout, roll_out(env, env_steps))


def check_spec(env: NativeEnv) -> None:
    """Assert that the spec has the right types, and that the environment is hashable."""
    spec, box = env.spec, env.spec.observation
    assert isinstance(hash(env), int)
    assert spec.id
    assert box.dtype in (np.float32, np.uint8)
    assert box.low.shape == box.high.shape
    assert len(box.shape) >= 1
    assert (box.low < box.high).all()
    if isinstance(spec.action, Discrete):
        assert spec.action.n >= 1
    else:
        assert np.isfinite([spec.action.low, spec.action.high]).all()
        assert (spec.action.low < spec.action.high).all()
        assert spec.action.dtype == np.float32


def check_types(env: NativeEnv, rollout: Rollout) -> None:
    """Assert that shapes and dtypes equal the spec's, and that those of states never change."""
    lead = rollout.step.reward.shape
    for obs in (rollout.obs, rollout.next_obs):
        assert obs.shape == (*lead, *env.spec.observation.shape)
        assert obs.dtype == env.spec.observation.dtype
    assert len(lead) == 2
    assert rollout.step.reward.dtype == np.float32
    for flag in (rollout.step.terminated, rollout.step.truncated):
        assert flag.shape == lead
        assert flag.dtype == bool
    describe = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    assert describe(rollout.state) == describe(rollout.step.state)


def check_bounds(env: NativeEnv, rollout: Rollout) -> None:
    """Assert that observations are within the spec's bounds and rewards are finite."""
    for obs in (rollout.obs, rollout.next_obs):
        assert np.isfinite(obs).all()
        assert (obs >= env.spec.observation.low - 1e-5).all()
        assert (obs <= env.spec.observation.high + 1e-5).all()
    assert np.isfinite(rollout.step.reward).all()


def check_ends(
    env: NativeEnv, rollout: Rollout, ends_by: Collection[str], earliest_cut: int | None
) -> None:
    """Assert that at most one flag is true, and that truncation happens exactly at the limit."""
    terminated, truncated = rollout.step.terminated, rollout.step.truncated
    limit = env.spec.max_episode_steps
    earliest = earliest_cut or limit
    assert ends_by
    assert not (terminated & truncated).any()
    assert terminated.any() == ("terminated" in ends_by)
    assert truncated.any() == ("truncated" in ends_by)
    age = np.zeros(terminated.shape[1], int)
    for t in range(len(terminated)):
        age += 1
        if limit is None or earliest is None:
            assert not truncated[t].any()
        else:
            assert (terminated[t] | truncated[t] | (age < limit)).all()
            assert not truncated[t, age < earliest].any()
        age[terminated[t] | truncated[t]] = 0


def check_one_row_alone(env: NativeEnv, rollout: Rollout) -> None:
    """Assert that a row stepped alone equals the same row under vmap."""
    step, observe = jax.jit(env.step), jax.jit(env.observe)
    length = len(rollout.action)
    for t, row in [(0, 0), (length // 2, 1), (length - 1, ROWS - 1)]:
        state = jax.tree.map(lambda leaf, t=t, row=row: jnp.asarray(leaf[t, row]), rollout.state)
        key = jax.random.wrap_key_data(rollout.key[t, row])
        alone = step(state, jnp.asarray(rollout.action[t, row]), key)
        beside = jax.tree.map(lambda leaf, t=t, row=row: leaf[t, row], rollout.step)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5, 1e-5), alone, beside)
        seen = rollout.next_obs[t, row]
        np.testing.assert_allclose(observe(alone.state), seen, 1e-5, 1e-5)


def check_starts(env: NativeEnv, random_starts: bool) -> None:
    """Assert that initial states follow from the key, and vary as the caller says."""
    keys = jax.random.split(jax.random.key(1), 16)
    reset = jax.jit(jax.vmap(lambda key: env.observe(env.reset(key))))
    obs = np.asarray(reset(keys))
    assert np.array_equal(obs, np.asarray(reset(keys)))
    assert (obs != obs[0]).any() == random_starts


def check_repeats(first: Rollout, second: Rollout) -> None:
    """Assert that the same keys and actions give the same bits."""
    assert jax.tree.all(jax.tree.map(np.array_equal, first, second))
