"""Classic control tasks equal Gymnasium's step by step, from any state."""

import os
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.native_env import random_actions, roll_out

from backflip.core.spaces import Discrete
from backflip.envs.native.acrobot import Acrobot
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.mountain_car import MountainCar
from backflip.envs.native.mountain_car_continuous import MountainCarContinuous
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.spec import NativeEnv

LIMIT = 25
ENVS = [CartPole(), Acrobot(), MountainCar(), MountainCarContinuous(), Pendulum()]
SHORT = [type(env)(max_episode_steps=LIMIT) for env in ENVS]
# A box of states that reaches past every clip, wall and threshold, one step of each away.
REACH = {
    "CartPole-v1": [(-2.4, 2.4), (-4, 4), (-0.2094, 0.2094), (-4, 4)],
    "Acrobot-v1": [(-np.pi, np.pi), (-np.pi, np.pi), (-12.5, 12.5), (-28.2, 28.2)],
    "MountainCar-v0": [(-1.2, 0.6), (-0.07, 0.07)],
    "MountainCarContinuous-v0": [(-1.2, 0.6), (-0.07, 0.07)],
    "Pendulum-v1": [(-np.pi, np.pi), (-8, 8)],
}
TERMINATES = {"CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0"}


def by_id(env: NativeEnv) -> str:
    return env.spec.id


def gymnasium_steps(env: Any, physics: Any, env_steps: Any, actions: Any) -> list[np.ndarray]:
    """Return one step of Gymnasium's environment from each of the states."""
    env.reset(seed=0)
    rows = []
    for state, age, action in zip(physics.astype(np.float64), env_steps, actions, strict=True):
        env.unwrapped.state = state
        env.unwrapped.steps_beyond_terminated = None  # CartPole's memory of having fallen
        env._elapsed_steps = int(age)
        within = action if np.ndim(action) == 0 else np.clip(action, *bounds(env))
        rows.append(env.step(within)[:4])
    return [np.array(column) for column in zip(*rows, strict=True)]


def bounds(env: Any) -> tuple[np.ndarray, np.ndarray]:
    return env.action_space.low, env.action_space.high


def assert_equal_steps(step: Any, next_obs: Any, reference: list[np.ndarray]) -> None:
    obs, reward, terminated, truncated = reference
    np.testing.assert_allclose(next_obs, obs, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(step.reward, reward, rtol=1e-5, atol=2e-5)
    assert np.array_equal(step.terminated, terminated)
    assert np.array_equal(step.truncated, truncated & ~terminated)


@pytest.mark.parametrize("env", ENVS, ids=by_id)
def test_specs_equal_gymnasiums(env: NativeEnv) -> None:
    reference = gymnasium.make(env.spec.id)
    assert reference.spec is not None
    assert env.spec.max_episode_steps == reference.spec.max_episode_steps
    pairs = [(env.spec.observation, reference.observation_space)]
    if isinstance(env.spec.action, Discrete):
        assert isinstance(reference.action_space, gymnasium.spaces.Discrete)
        assert env.spec.action.n == reference.action_space.n
    else:
        pairs.append((env.spec.action, reference.action_space))
    for ours, theirs in pairs:
        assert isinstance(theirs, gymnasium.spaces.Box)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.low, theirs.low)
        np.testing.assert_array_equal(ours.high, theirs.high)


@pytest.mark.medium
@pytest.mark.parametrize("env", SHORT, ids=by_id)
def test_equal_along_random_trajectories(env: NativeEnv) -> None:
    reference = gymnasium.make(env.spec.id, max_episode_steps=LIMIT)
    for seed in (0, 1, 2):
        rollout = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), roll_out(env, 60, seed))
        state = rollout.state
        expected = gymnasium_steps(reference, state.physics, state.env_steps, rollout.action)
        assert_equal_steps(rollout.step, rollout.next_obs, expected)
        assert expected[3].any()
    assert env.spec.id != "CartPole-v1" or expected[2].any()


def as_users_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with XLA's default fusions, whatever the quick tests do.

    Without them float32 rounds in another way, and one of 4,800 numbers of Acrobot is off by 2e-4
    of its size. JAX 0.11 has no such option.
    """
    option = "xla_cpu_use_fusion_emitters"
    without = option in os.environ.get("XLA_FLAGS", "")
    return jax.jit(function, compiler_options={option: True} if without else None)


@pytest.mark.medium
@pytest.mark.parametrize("env", SHORT, ids=by_id)
def test_equal_from_arbitrary_states(env: NativeEnv) -> None:
    rng = np.random.default_rng(0)
    low, high = np.array(REACH[env.spec.id]).T
    physics = rng.uniform(low, high, (800, len(low)))
    edges = rng.random(physics.shape) < 0.1  # on the edge itself, where clips and walls are
    physics = np.where(edges, np.where(rng.random(physics.shape) < 0.5, low, high), physics)
    physics = physics.astype(np.float32)
    ages = rng.integers(LIMIT, size=len(physics)).astype(np.int32)
    actions = random_actions(env.spec, rng, (len(physics),))

    def step(state: Any, action: Any) -> Any:
        after = env.step(state, action, jax.random.key(0))
        return after, env.observe(after.state)

    template = env.reset(jax.random.key(0))
    state = template._replace(physics=jnp.asarray(physics), env_steps=jnp.asarray(ages))
    ours, next_obs = as_users_compile(jax.vmap(step))(state, jnp.asarray(actions))
    reference = gymnasium.make(env.spec.id, max_episode_steps=LIMIT)
    expected = gymnasium_steps(reference, physics, ages, actions)
    assert_equal_steps(ours, next_obs, expected)
    terminated, truncated = expected[2:]
    assert (truncated & ~terminated).any()
    assert terminated.any() == (env.spec.id in TERMINATES)
    assert (terminated & truncated).any() == (env.spec.id in TERMINATES)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "kwargs"),
    [
        (CartPole(sutton_barto_reward=True), {"sutton_barto_reward": True}),
        (MountainCar(goal_velocity=0.03), {"goal_velocity": 0.03}),
        (MountainCarContinuous(goal_velocity=0.03), {"goal_velocity": 0.03}),
        (Pendulum(g=3.7), {"g": 3.7}),
    ],
    ids=["sutton_barto_reward", "goal_velocity", "goal_velocity continuous", "g"],
)
def test_equal_with_other_arguments(env: NativeEnv, kwargs: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    low, high = np.array(REACH[env.spec.id]).T
    physics = rng.uniform(low, high, (400, len(low))).astype(np.float32)
    actions = random_actions(env.spec, rng, (400,))
    ages = np.zeros(400, np.int32)
    state = env.reset(jax.random.key(0))._replace(physics=jnp.asarray(physics), env_steps=ages)
    ours = jax.jit(jax.vmap(env.step, (0, 0, None)))(state, actions, jax.random.key(0))
    expected = gymnasium_steps(gymnasium.make(env.spec.id, **kwargs), physics, ages, actions)
    assert_equal_steps(ours, jax.vmap(env.observe)(ours.state), expected)
    plain = gymnasium_steps(gymnasium.make(env.spec.id), physics, ages, actions)
    assert any(not np.array_equal(a, b) for a, b in zip(plain, expected, strict=True))


@pytest.mark.medium
@pytest.mark.parametrize("env", ENVS, ids=by_id)
def test_initial_states_are_distributed_as_in_gymnasium(env: NativeEnv) -> None:
    reference = gymnasium.make(env.spec.id)
    theirs = np.stack([reference.reset(seed=seed)[0] for seed in range(300)])
    keys = jax.random.split(jax.random.key(0), 3000)
    ours = np.asarray(jax.jit(jax.vmap(lambda key: env.observe(env.reset(key))))(keys))
    spread = ours.std(0) + 1e-6
    assert (np.abs(ours.mean(0) - theirs.mean(0)) < 0.25 * spread).all()
    np.testing.assert_allclose(theirs.std(0) + 1e-6, spread, rtol=0.15)
    np.testing.assert_allclose(theirs.min(0), ours.min(0), atol=0.1 * spread.max())
    np.testing.assert_allclose(theirs.max(0), ours.max(0), atol=0.1 * spread.max())


@pytest.mark.slow
def test_pendulum_keeps_precision_over_many_turns() -> None:
    """After 200 env steps of spinning, the angle equals that of a float64 sum."""
    env = Pendulum(g=0.0)
    state = env.reset(jax.random.key(0))._replace(physics=jnp.array([0.3, 7.77]))
    step = jax.jit(env.step)
    for _ in range(200):
        state = step(state, jnp.zeros(1), jax.random.key(0)).state
    angle = 0.3 + 200 * 0.05 * float(np.float32(7.77))
    expected = [np.cos(angle), np.sin(angle), 7.77]
    np.testing.assert_allclose(env.observe(state), expected, atol=2e-5)
