"""The DeepMind Control Suite by envpool, where that is installed."""

import importlib.util
import sys

import numpy as np
import pytest

from backflip.core.errors import UsageError
from backflip.envs.registry import is_native, make_host, make_native
from tests.conformance.host_env import check_host_env

INSTALLED = importlib.util.find_spec("envpool") is not None
with_envpool = pytest.mark.skipif(not INSTALLED, reason="envpool is not installed")


def test_without_envpool_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    monkeypatch.delitem(sys.modules, "backflip.envs.dm_control", raising=False)
    with pytest.raises(
        UsageError, match=r"needs envpool, .* try: pip install 'backflip\[envpool\]"
    ):
        make_host("dm_control:cheetah-run")


def test_is_for_the_host() -> None:
    assert not is_native("dm_control:cheetah-run")
    assert make_native("dm_control:cheetah-run") is None


def test_there_is_one_autoreset_mode() -> None:
    with pytest.raises(UsageError, match="has no autoreset `same_step`, only next_step"):
        make_host("dm_control:cheetah-run", {}, 2, "same_step")


@with_envpool
@pytest.mark.parametrize(
    "name", ["cheetah-run", "ball_in_cup-catch", "cartpole-swingup_sparse", "humanoid_CMU-run"]
)
def test_keeps_the_interface(name: str) -> None:
    check_host_env(
        lambda num_envs: make_host(f"dm_control:{name}", {"max_episode_steps": 12}, num_envs),
        ends_by={"truncated"},
        env_steps=40,
        reset_rows=True,
    )


@with_envpool
def test_facts_and_rewards() -> None:
    env = make_host("dm_control:walker-walk", {}, 2)
    assert (env.spec.max_episode_steps, env.spec.terminates) == (1_000, False)
    assert env.spec.observation.shape == (24,)
    assert np.isinf(env.spec.observation.low).all()
    env.reset([0, 1])
    rewards = np.stack([env.step(np.zeros((2, 6), np.float32)).reward for _ in range(50)])
    assert ((rewards >= 0) & (rewards <= 1)).all()
    env.close()


@with_envpool
def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UsageError, match="unknown dm_control task `cheetah-rum`, did you mean"):
        make_host("dm_control:cheetah-rum")
