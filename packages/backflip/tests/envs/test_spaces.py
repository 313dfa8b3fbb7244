"""Spaces of several parts: observations as Gymnasium flattens them, actions as one choice."""

import itertools
import json
import re
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from packages.backflip.tests.conformance.host_env import check_host_env

from backflip.cli.main import main
from backflip.core.errors import EnvironmentFailed
from backflip.core.spaces import Discrete
from backflip.core.spec import changes, combinations, conversions, shown_actions
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.registry import make_host
from backflip.inspect.key_bindings import actions
from backflip.training.train import train
from runshelf.errors import UsageError

POSITION = spaces.Box(-1, 1, (2,), np.float32)
OBSERVATIONS = {
    "dict": spaces.Dict(position=POSITION, goal=spaces.Discrete(3, start=1)),
    "tuple": spaces.Tuple([spaces.Discrete(4), spaces.Box(0, 9, (2, 2), np.int64)]),
    "nested": spaces.Dict(
        a=spaces.Tuple([POSITION, spaces.Dict(z=spaces.MultiBinary(2), y=spaces.Discrete(2))]),
        b=spaces.Box(-1, 1, (), np.float64),
    ),
    "choices": spaces.MultiDiscrete([2, 3, 4]),
    "choices from 5": spaces.MultiDiscrete([2, 3], start=[5, -1]),
    "table of choices": spaces.MultiDiscrete([[2, 3], [4, 2]]),
    "bits": spaces.MultiBinary([2, 3]),
    "small grid": spaces.Dict(cells=spaces.Box(0, 10, (7, 7, 3), np.uint8), to=spaces.Discrete(4)),
}
ACTIONS: dict[str, tuple[Any, int]] = {
    "choices": (spaces.MultiDiscrete([3, 2]), 6),
    "choices from -1": (spaces.MultiDiscrete([3, 2], start=[-1, 4]), 6),
    "table of choices": (spaces.MultiDiscrete([[2, 3], [2, 2]]), 24),
    "bits": (spaces.MultiBinary(4), 16),
    "table of bits": (spaces.MultiBinary([2, 2]), 16),
    "dict": (spaces.Dict(steer=spaces.Discrete(3, start=-1), fire=spaces.MultiBinary(2)), 12),
    "tuple": (spaces.Tuple([spaces.Discrete(2), spaces.MultiDiscrete([2, 2])]), 8),
}


class _Parts(gymnasium.Env[Any, Any]):
    """Observes samples of its space and keeps its actions; ends after some env steps."""

    def __init__(self, observation: Any = POSITION, action: Any = None, length: int = 4) -> None:
        self.observation_space = deepcopy(observation)
        self.action_space = deepcopy(action) if action is not None else spaces.Discrete(2)
        self.length, self.taken = length, []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.age = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.taken.append(deepcopy(action))
        self.age += 1
        return self.observation_space.sample(), 1.0, self.age == self.length, False, {}


class _Shows(_Parts):
    """Observes the given value in its second env step."""

    def __init__(self, observation: Any, value: Any) -> None:
        super().__init__(observation, length=9)
        self.value = value

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        return self.value if self.age == 2 else obs, *rest


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_observations_are_those_of_gymnasiums_wrapper(kind: str, autoreset: str) -> None:
    space = OBSERVATIONS[kind]
    ours = GymnasiumEnv.of("mine", lambda: _Parts(space), 2, autoreset)
    wrapped = [gymnasium.wrappers.FlattenObservation(_Parts(space)) for _ in range(2)]
    obs = ours.reset([3, 4])
    np.testing.assert_allclose(
        obs, [env.reset(seed=seed)[0] for env, seed in zip(wrapped, (3, 4), strict=True)]
    )
    bounds = wrapped[0].observation_space
    assert isinstance(bounds, spaces.Box)
    np.testing.assert_array_equal(ours.spec.observation.low, bounds.low.reshape(-1))
    np.testing.assert_array_equal(ours.spec.observation.high, bounds.high.reshape(-1))
    for _ in range(4):  # the last step ends the episode: its true successor is asked for
        step = ours.step(np.array([1, 0]))
        theirs = [env.step(1)[0] for env in wrapped]
        np.testing.assert_allclose(step.next_obs, theirs)
    assert step.terminated.all()
    (said,) = conversions(ours.spec)
    assert f"one vector of {bounds.low.size} numbers" in said


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_keeps_the_interface(autoreset: str) -> None:
    observation, action = OBSERVATIONS["nested"], ACTIONS["dict"][0]

    def make(rows: int) -> GymnasiumEnv:
        return GymnasiumEnv.of("mine", partial(_Parts, observation, action), rows, autoreset)

    resets = autoreset == "next_step"
    check_host_env(make, ends_by={"terminated"}, env_steps=30, reset_rows=resets)


@pytest.mark.parametrize("kind", ACTIONS)
def test_each_combination_of_choices_is_one_action(kind: str) -> None:
    space, count = ACTIONS[kind]
    made: list[_Parts] = []

    def make() -> _Parts:
        made.append(_Parts(action=space, length=1_000))
        return made[-1]

    env = GymnasiumEnv.of("mine", make, 1)
    assert env.spec.action == Discrete(count)
    env.reset([0])
    for number in range(count):
        env.step(np.array([number], np.int32))
    taken = [
        np.concatenate([np.ravel(leaf) for leaf in flat(space, a)]).tolist() for a in made[0].taken
    ]
    assert len(set(map(tuple, taken))) == count
    assert taken == sorted(taken)  # the last choice changes fastest
    names = [one.name for one in actions(env.spec, None)]
    assert names == combinations(env.spec)
    assert len(set(names)) == count
    shown = shown_actions(env.spec, np.arange(count, dtype=np.int32))
    assert shown.tolist() == taken


def flat(space: Any, action: Any) -> list[Any]:
    """The parts of an action, in the order of its space."""
    if isinstance(action, dict):
        return [action[name] for name in space]
    return list(action) if isinstance(action, tuple) else [action]


def test_names_of_combinations_by_hand() -> None:
    of_dict = GymnasiumEnv.of("mine", lambda: _Parts(action=ACTIONS["dict"][0]), 1).spec
    assert combinations(of_dict)[0] == "action 0 (steer -1, fire 0, 0)"
    assert combinations(of_dict)[5] == "action 5 (steer 0, fire 0, 1)"
    of_choices = GymnasiumEnv.of("mine", lambda: _Parts(action=ACTIONS["choices"][0]), 1).spec
    assert combinations(of_choices)[3] == "action 3 (1, 1)"
    assert conversions(of_choices) == [
        "actions are choices among 3, 2: learned as one choice of 6 combinations"
    ]
    plain = GymnasiumEnv.of("mine", _Parts, 1).spec
    assert combinations(plain) == conversions(plain) == []


def test_boxes_side_by_side_are_one_vector() -> None:
    space = spaces.Dict(
        arm=spaces.Box(-1, 1, (2,), np.float32), grip=spaces.Box(0, 2, (1, 2), np.float64)
    )
    inner = _Parts(action=space)
    env = GymnasiumEnv.of("mine", lambda: inner, 1)
    env.reset([0])
    env.step(np.array([[0.5, -3, 1, 7]], np.float32))
    np.testing.assert_allclose(inner.taken[0]["arm"], [0.5, -1])
    np.testing.assert_allclose(inner.taken[0]["grip"], [[1, 2]])


def test_changed_order_of_choices_is_a_change() -> None:
    before, now = (
        GymnasiumEnv.of("mine", lambda sizes=sizes: _Parts(action=spaces.MultiDiscrete(sizes)), 1)
        for sizes in ([2, 3], [3, 2])
    )
    assert changes(before.spec, before.spec) == ""
    said = "its own action was choices among 2, 3, now choices among 3, 2"
    assert changes(before.spec, now.spec) == said


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("dict", {"goal": 1}, "observation has the parts goal, expected position, goal"),
        ("dict", {"goal": 4, "position": np.zeros(2)}, "observation['goal'] has index 3 of 3"),
        ("dict", {"goal": 1, "position": np.zeros(3)}, "observation['position'] has shape (3,)"),
        ("dict", {"goal": 1.5, "position": np.zeros(2)}, "observation['goal'] has dtype float64"),
        ("dict", np.zeros(5), "observation is of type ndarray, expected a dict"),
        ("dict", {"goal": 1, "position": np.full(2, np.nan)}, "observation[0] is nan"),
        ("dict", {"goal": [1, 1], "position": np.zeros((2, 2))}, "is a batch of 2, expected one"),
        ("dict", {"goal": 1, "position": [1, [2]]}, "observation['position'] is not an array"),
        ("tuple", (1,), "observation has the parts 0, expected 0, 1"),
        ("tuple", {1, 2}, "observation is of type set, expected a tuple"),
        ("choices", np.array([0, 3, 0]), "observation has index 3 of 3 choices"),
    ],
)
def test_invalid_part_is_named(kind: str, value: Any, message: str) -> None:
    env = GymnasiumEnv.of("mine", lambda: _Shows(OBSERVATIONS[kind], value), 2)
    env.reset([0, 1])
    env.step(np.array([0, 0]))
    where = "environment `mine` failed in row 0 at step 2 of episode 1: "
    with pytest.raises(EnvironmentFailed, match=re.escape(where)) as caught:
        env.step(np.array([0, 0]))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"observation": spaces.Dict(a=spaces.Box(0, 255, (64, 64, 3), np.uint8), b=POSITION)},
            "an image, ['a'] of shape (64, 64, 3), which cannot be flattened",
        ),
        ({"observation": spaces.Dict(a=spaces.Text(3), b=POSITION)}, "`a` is Text(1, 3"),
        ({"observation": spaces.Tuple([])}, "supported: 1 to 100,000 numbers when flattened"),
        ({"observation": spaces.MultiDiscrete([99_999, 2])}, "1 to 100,000 numbers"),
        ({"action": spaces.MultiBinary(13)}, "8,192 combinations"),
        ({"action": spaces.MultiDiscrete([10**9] * 9)}, "at most 4,096 are supported"),
        ({"action": spaces.Dict(a=spaces.Discrete(2), b=POSITION)}, "groups of choices only"),
        ({"action": spaces.Dict({})}, "groups of choices only"),
        ({"action": spaces.Dict(a=spaces.Text(3))}, "MultiDiscrete, and Box"),
    ],
)
def test_unsupported_parts_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        GymnasiumEnv.of("mine", lambda: _Parts(**given), 1)
    assert "\n" not in str(caught.value)


def test_an_environment_of_gymnasium_with_a_tuple_can_be_played() -> None:
    env = make_host("Blackjack-v1", {}, 3)
    obs = env.reset([0, 1, 2])
    assert obs.shape == (3, 32 + 11 + 2)
    assert (obs.sum(1) == 3).all()
    for _, action in zip(range(30), itertools.cycle((0, 1)), strict=False):
        assert (env.step(np.full(3, action)).obs.sum(1) == 3).all()


@pytest.mark.medium
def test_training_says_what_was_flattened_and_the_policy_takes_it_whole(tmp_path: Path) -> None:
    notes: list[str | None] = []
    settings = {"hidden": (8,), "num_envs": 2, "rollout_length": 16}
    result = train(
        "dqn",
        "Blackjack-v1",
        env_steps=512,
        settings={**settings, "learning_starts": 128},
        home=tmp_path,
        report=lambda progress: notes.append(progress.note),
    )
    said = [note for note in notes if note and "flattened to one vector of 45 numbers" in note]
    assert said
    policy = result.policy()
    assert policy.act((5, 3, 0)) in (0, 1)
    batch = (np.array([5, 20]), np.array([3, 4]), np.array([0, 1]))
    assert policy.act(batch).tolist() == [policy.act((5, 3, 0)), policy.act((20, 4, 1))]
    with pytest.raises(UsageError, match=r"`obs`\[1\] has index 11 of 11 choices"):
        policy.act((5, 11, 0))
    with pytest.raises(UsageError, match="`obs` has the parts 0, 1, expected 0, 1, 2"):
        policy.act((5, 3))


@pytest.mark.slow
def test_look_says_what_learning_sees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clip = str(tmp_path / "clip.webp")
    assert main(["look", "Blackjack-v1", "--episodes", "2", "--json", "--out", clip]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["own observations"].startswith("a tuple (one of 32; one of 11; one of 2): flat")
