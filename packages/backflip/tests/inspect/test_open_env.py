"""`SteppedEnv` makes an environment in JAX a host environment."""

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
from backflip.inspect.open_env import SteppedEnv, open_env, scenes_of


class Paying(Pendulum):
    """Returns the action as the reward."""

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Step the pendulum and replace its reward."""
        return super().step(state, action, key)._replace(reward=action[0])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "ends_by", "env_steps"),
    [
        (CartPole(max_episode_steps=20), {"terminated", "truncated"}, 120),
        (Pendulum(max_episode_steps=12), {"truncated"}, 40),
    ],
    ids=["CartPole", "Pendulum"],
)
def test_conforms_to_the_host_interface(env: Any, ends_by: set[str], env_steps: int) -> None:
    check_host_env(
        lambda rows: SteppedEnv(env, rows), ends_by=ends_by, env_steps=env_steps, reset_rows=True
    )


@pytest.mark.medium
def test_equals_the_single_environment() -> None:
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


@pytest.mark.medium
def test_actions_outside_the_space_are_clipped() -> None:
    stepped = SteppedEnv(Paying(), 2)
    stepped.reset([5, 5])
    assert stepped.step(np.float32([[9.0], [-1.5]])).reward.tolist() == [2.0, -1.5]


@pytest.mark.slow
def test_rows_with_one_seed_are_equal_and_scenes_are_current() -> None:
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


def test_first_observation_that_is_not_finite_is_refused() -> None:
    with pytest.raises(EnvironmentFailed, match=r"row 0 at the reset: observation\[0\] is nan"):
        SteppedEnv(_Blind(), 1).reset([0])


@pytest.mark.medium
def test_termination_excludes_truncation() -> None:
    env = SteppedEnv(_BothEnds(), 1)
    env.reset([0])
    step = env.step(np.array([0]))
    assert (step.terminated.tolist(), step.truncated.tolist()) == ([True], [False])


@pytest.mark.medium
def test_reward_that_is_not_finite_is_refused() -> None:
    env = SteppedEnv(_Broken(), 1)
    env.reset([0])
    with pytest.raises(
        EnvironmentFailed,
        match="in row 0 at env step 1: reward is nan",
    ):
        env.step(np.array([0]))
