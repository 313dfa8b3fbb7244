"""An environment in JAX, stepped by hand, is a host environment like any other."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.host_env import check_host_env

from backflip.core.errors import EnvironmentFailed
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.spec import NativeStep
from backflip.inspect.open_env import SteppedEnv, ProgressEnv, open_env, scenes_of


class Paying(Pendulum):
    """Pays its action, whatever that is."""

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Return what the pendulum does, and the action for a reward."""
        return super().step(state, action, key)._replace(reward=action[0])


@pytest.mark.parametrize(
    ("env", "ends_by", "env_steps"),
    [
        (CartPole(max_episode_steps=20), {"terminated", "truncated"}, 120),
        (Pendulum(max_episode_steps=12), {"truncated"}, 40),
    ],
    ids=["CartPole", "Pendulum"],
)
def test_keeps_the_interface_of_host_environments(
    env: Any, ends_by: set[str], env_steps: int
) -> None:
    check_host_env(
        lambda rows: SteppedEnv(env, rows), ends_by=ends_by, env_steps=env_steps, reset_rows=True
    )


def test_who_tells_how_far_it_is_keeps_the_interface_too() -> None:
    def make(rows: int) -> ProgressEnv:
        return ProgressEnv(SteppedEnv(Pendulum(max_episode_steps=12), rows), 40, lambda _: None)

    check_host_env(make, ends_by={"truncated"}, env_steps=40, reset_rows=True)


def test_it_is_the_environment_stepped_alone() -> None:
    env = CartPole()
    first, _ = jax.random.split(jax.random.key(7))
    state = env.reset(first)
    stepped = SteppedEnv(env, 2)
    np.testing.assert_array_equal(stepped.reset([7, 8])[0], env.observe(state))
    for action in (0, 1, 1, 0):
        moved = env.step(state, jnp.int32(action), jax.random.key(0))
        step = stepped.step(np.array([action, 1 - action]))
        state = moved.state
        np.testing.assert_allclose(step.next_obs[0], env.observe(state), atol=1e-6)
        assert step.reward[0] == moved.reward


def test_an_action_outside_the_space_is_moved_to_its_bounds() -> None:
    stepped = SteppedEnv(Paying(), 2)
    stepped.reset([5, 5])
    assert stepped.step(np.float32([[9.0], [-1.5]])).reward.tolist() == [2.0, -1.5]


def test_rows_of_one_seed_are_equal_and_scenes_are_of_the_present() -> None:
    env = open_env("dot", {}, 2)
    obs = env.reset([3, 3])
    np.testing.assert_array_equal(obs[0], obs[1])
    before = scenes_of(env)
    env.step(np.array([2, 2]))
    after = scenes_of(env)
    assert before is not None
    assert after is not None
    assert (after[:, 0] - before[:, 0]).tolist() in ([4.0, 4.0], [0.0, 0.0])  # 0 at the margin
    assert scenes_of(SteppedEnv(CartPole(), 1)) is None


@dataclass(frozen=True)
class _Broken(CartPole):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        return super().step(state, action, key)._replace(reward=jnp.float32(np.nan))


@dataclass(frozen=True)
class _Blind(CartPole):
    def observe(self, state: Any) -> Any:
        return super().observe(state) * jnp.float32(np.nan)


@dataclass(frozen=True)
class _BothEnds(CartPole):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        ends = jnp.array(True)
        return super().step(state, action, key)._replace(terminated=ends, truncated=ends)


def test_a_start_that_is_not_finite_is_told_with_its_place() -> None:
    with pytest.raises(EnvironmentFailed, match=r"row 0 at the reset: observation\[0\] is nan"):
        SteppedEnv(_Blind(), 1).reset([0])


def test_what_the_task_ended_no_time_limit_cut() -> None:
    env = SteppedEnv(_BothEnds(), 1)
    env.reset([0])
    step = env.step(np.array([0]))
    assert (step.terminated.tolist(), step.truncated.tolist()) == ([True], [False])


def test_numbers_that_are_not_finite_are_refused() -> None:
    env = SteppedEnv(_Broken(), 1)
    env.reset([0])
    with pytest.raises(
        EnvironmentFailed,
        match="in row 0 at env step 1: reward is nan",
    ):
        env.step(np.array([0]))
