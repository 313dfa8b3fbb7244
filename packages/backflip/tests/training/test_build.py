"""From names to a driver; the environment made to read its facts is closed again."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from backflip.training.build import build, spec_of
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.setup import resolve_teaching

COUNTED = """
from gymnasium.envs.classic_control import PendulumEnv

class Counted(PendulumEnv):
    open = 0

    def __init__(self):
        super().__init__()
        Counted.open += 1

    def close(self):
        Counted.open -= 1
"""
ENV, LIMIT = "counted:Counted", {"max_episode_steps": 200}


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of an environment that counts how many of its kind are open."""
    (tmp_path / "counted.py").write_text(COUNTED)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "counted", raising=False)
    assert spec_of(ENV, LIMIT).max_episode_steps == 200
    return sys.modules["counted"]


def test_reading_facts_leaves_nothing_open(counted: ModuleType) -> None:
    assert counted.Counted.open == 0


def test_settings_of_teach_are_resolved_with_no_more_open_than_the_run_needs(
    counted: ModuleType,
) -> None:
    _, built = resolve_teaching("ppo", ENV, LIMIT, {}, None, 10)
    assert built.driver.spec.max_episode_steps == 200
    assert counted.Counted.open == 1


@pytest.mark.parametrize("learned_reward", [False, True])
def test_only_a_learned_reward_needs_the_successors_of_images(learned_reward: bool) -> None:
    teaching = TeachConfig() if learned_reward else None
    built = build("dqn", "MinAtar/Breakout-v1", env_args={}, settings={}, teaching=teaching)
    plan = built.driver.algorithm.replay
    assert plan is not None
    assert plan.keeps_successors == learned_reward


SHORT = {"env_steps": 1_000, "learning_starts": 64, "batch_size": 8, "hidden": (4,)}


def test_a_replay_has_rows_for_the_run_and_one_rollout_more() -> None:
    plan = build("sac", "Pendulum-v1", env_args={}, settings=SHORT).driver.algorithm
    assert plan.replay is not None
    rollout = plan.num_envs * plan.rollout_length
    assert plan.replay.capacity % rollout == 0
    assert 1_000 <= plan.replay.capacity - rollout < 1_000 + rollout
    small = build("sac", "Pendulum-v1", env_args={}, settings=SHORT | {"buffer_size": 256})
    assert small.driver.algorithm.replay is not None
    assert small.driver.algorithm.replay.capacity == 256


def test_a_prioritized_replay_keeps_its_capacity_since_its_tree_cannot_grow() -> None:
    settings = {**SHORT, "prioritized": True, "buffer_size": 5_000}
    plan = build("dqn", "CartPole-v1", env_args={}, settings=settings).driver.algorithm.replay
    assert plan is not None
    assert plan.capacity == 5_000
