"""Phases of `teach` are long enough for clips of the agent."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backflip.algorithms.interface import Settings
from backflip.algorithms.registry import entry_of
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.training.algorithm_config import configure
from backflip.training.parents import Before
from backflip.training.planning import phases_of_length, plan
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.more import child_config, more_budget
from backflip.training.teaching.phases import refuse_short_phases, with_phases
from backflip.training.teaching.setup import resolve_teaching
from runshelf.errors import UsageError

SPACE = Box(np.zeros(2, np.float32), np.ones(2, np.float32), np.dtype("f4"))
PENDULUM = TeachConfig(clip_length=50, clip_rollouts=640)


def sac(env_steps: int) -> Settings:
    sizes = {"num_envs": 4, "rollout_length": 16, "learning_starts": 1_000}
    return configure(entry_of("sac"), sizes | {"env_steps": env_steps})


def chosen(env_steps: int, *given: str, asks: bool = True) -> tuple[int, int, int]:
    """Return phases, env steps of each environment in the first one, and the clip length."""
    own = sac(env_steps)
    config = with_phases(PENDULUM, own, own.updates, given, asks=asks)
    room = plan(own.updates, config.phases)[0] * own.rollout_length
    return config.phases, room, config.clip_length


@pytest.mark.parametrize(
    ("env_steps", "given", "asks", "expected"),
    [
        pytest.param(20_000, (), True, (20, 240, 50), id="an ordinary run keeps its phases"),
        pytest.param(5_000, (), True, (12, 112, 50), id="fewer phases"),
        pytest.param(5_000, ("phases",), True, (20, 48, 50), id="the user's phases stay"),
        pytest.param(5_000, (), False, (20, 48, 50), id="without queries"),
        pytest.param(1_300, (), True, (2, 48, 24), id="shorter clips"),
        pytest.param(1_300, ("clip_length",), True, (2, 48, 50), id="the user's clips stay"),
        pytest.param(1_088, (), True, (1, 16, 50), id="one phase, and no query after it"),
    ],
)
def test_phases_have_room_for_clips(
    env_steps: int, given: tuple[str, ...], asks: bool, expected: tuple[int, int, int]
) -> None:
    assert chosen(env_steps, *given, asks=asks) == expected


def test_env_steps_that_have_enough_different_clips() -> None:
    """Of 64 environments, four windows each are enough; one environment needs two whole clips."""
    assert PENDULUM.clip_env_steps(64) == 50 - 1 + 4
    assert PENDULUM.clip_env_steps(1) == 50 - 1 + 50
    assert TeachConfig(clip_envs=1).clip_env_steps(64) == 25 - 1 + 25


def test_the_largest_number_of_phases_is_found() -> None:
    found = phases_of_length(60, 7, 20)
    assert plan(60, found)[0] >= 7
    assert all(plan(60, more)[0] < 7 for more in range(found + 1, 21))
    assert [phases_of_length(60, least, 20) for least in (1, 3, 1_000)] == [20, 20, 2]
    assert phases_of_length(1, 7, 1) == 1


@pytest.mark.parametrize(
    ("settings", "tries"),
    [
        ({"phases": 8}, "--set phases=3 or --set clip_length=8 or more --env-steps"),
        ({"clip_rollouts": 1}, "--set clip_rollouts=2 or --set clip_length=8 or more"),
        ({"clip_length": 90}, "--set clip_length=32 or more --env-steps"),
    ],
)
def test_settings_that_leave_no_clip_of_the_agent_are_refused(
    settings: dict[str, Any], tries: str
) -> None:
    small = {"num_envs": 16, "rollout_length": 16, "minibatches": 1, "random_env_steps": 90}
    with pytest.raises(UsageError, match="would not show the agent") as refused:
        resolve_teaching("ppo", "CartPole-v1", {}, small | settings, 16 * 16 * 8, 20)
    assert f"try {tries}" in str(refused.value)


def test_what_a_refusal_suggests_is_accepted() -> None:
    own = sac(5_000)
    for some in ({"phases": 12}, {"clip_length": 24}, {"phases": 1}):
        refuse_short_phases(TeachConfig(**{"clip_length": 50, **some}), own, own.updates)
    with pytest.raises(UsageError, match="--set phases=12 or --set clip_length=24"):
        refuse_short_phases(PENDULUM, own, own.updates)


@pytest.mark.parametrize(
    ("limit", "tries"),
    [
        (1, "has 1; try --env-arg max_episode_steps=2, or `backflip train`"),
        (2, "(2); try --set clip_length=2"),
        (40, "(40); try --set clip_length=25"),
    ],
)
def test_what_a_message_suggests_for_short_episodes_is_accepted(limit: int, tries: str) -> None:
    spec = EnvSpec("short", SPACE, Discrete(2), limit)
    with pytest.raises(UsageError) as refused:
        TeachConfig(clip_length=50).check(spec, 20, 20)
    assert tries in str(refused.value)
    if limit > 1:
        TeachConfig(clip_length=min(limit, 25)).check(spec, 20, 20)


@pytest.mark.parametrize(
    ("env_steps", "labels", "phases"), [(20_000, 10, 20), (4_000, 10, 12), (4_000, 0, 20)]
)
def test_a_child_has_phases_with_room_for_clips(env_steps: int, labels: int, phases: int) -> None:
    """It goes on after 64 env steps of learning, and 1,024 random ones."""
    parent: Any = SimpleNamespace(config={"teaching": dataclasses.asdict(PENDULUM)})
    built: Any = SimpleNamespace(config=sac(1_088 + env_steps))
    config = child_config(parent, Before(updates=1, labels=100), built, labels)
    assert (config.labels, config.phases) == (100 + labels, phases)


@pytest.mark.parametrize("labels", [1, 2, 50])
def test_a_few_more_labels_get_the_env_steps_that_they_need(labels: int) -> None:
    teaching = dataclasses.asdict(PENDULUM)
    parent: Any = SimpleNamespace(config={"teaching": teaching, "teacher": "oracle"})
    before = Before(updates=1, labels=100, env_steps=10_000)
    budget = more_budget(parent, sac(1_088), before, labels, None)
    assert budget.env_steps == max(100 * labels, 8 * 64)
    built: Any = SimpleNamespace(config=sac(1_088 + budget.env_steps))
    assert child_config(parent, before, built, labels).labels == 100 + labels


def test_a_child_with_labels_needs_two_phases_with_a_clip_each() -> None:
    parent: Any = SimpleNamespace(config={"teaching": dataclasses.asdict(PENDULUM)})
    built: Any = SimpleNamespace(config=sac(1_088 + 7 * 64))
    with pytest.raises(UsageError, match=r"need 8 updates or more, .*; try --env-steps 512"):
        child_config(parent, Before(updates=1), built, 10)
