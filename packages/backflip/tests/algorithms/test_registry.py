"""One registry entry per algorithm, readable without JAX."""

from typing import Any

import numpy as np
import pytest

from backflip.algorithms.entry import kinds_of
from backflip.algorithms.registry import algorithms, check_spaces, entry_of, names
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.training.teaching.defaults import teach_settings
from runshelf.errors import UsageError


def spec(observation: tuple[int, ...], actions: int | None = None, id_: str = "mine") -> EnvSpec:
    """An environment of images or vectors, with discrete or, by default, continuous actions."""
    dtype = np.dtype(np.uint8 if len(observation) == 3 else np.float32)
    low = np.zeros(observation, dtype)
    one = np.ones(1, np.float32)
    action = Box(-one, one, one.dtype) if actions is None else Discrete(actions)
    return EnvSpec(id_, Box(low, low + 1, dtype), action, 200)


def test_there_are_eight_algorithms_and_each_module_holds_the_entry_of_its_name() -> None:
    assert names() == ["a2c", "cem", "ddpg", "dqn", "ppo", "sac", "td3", "vpg"]
    assert [entry.name for entry in algorithms().values()] == names()


def test_algorithms_with_a_replay() -> None:
    found = [name for name, entry in algorithms().items() if entry.has_replay]
    assert found == ["ddpg", "dqn", "sac", "td3"]


@pytest.mark.parametrize("name", names())
def test_an_entry_builds_the_algorithm_of_its_name(name: str) -> None:
    entry = entry_of(name)
    env = spec((3,), 2 if entry.discrete else None)
    assert entry.build(entry.config(**entry.defaults_for(env, {})), env).name == name
    assert entry.page == f"docs/algorithms/{name}.md"


def test_an_unknown_algorithm_is_refused_with_all_names() -> None:
    said = r"^unknown algorithm `dqm`, did you mean `dqn`\? \(there are: a2c, cem, .*, vpg\)$"
    with pytest.raises(UsageError, match=said):
        entry_of("dqm")


@pytest.mark.parametrize(
    ("name", "env", "said"),
    [
        ("dqn", spec((3,)), "`dqn` chooses discrete actions, and those of `mine` are continuous"),
        ("td3", spec((3,), 2), "`td3` chooses continuous actions, and those of `mine` are discr"),
        ("cem", spec((84, 84, 4), 2), "observations of `mine` are images of 84x84x4"),
        ("sac", spec((84, 84, 4)), "`sac` does not learn such actions from images"),
    ],
)
def test_a_space_that_an_algorithm_does_not_support_is_refused(
    name: str, env: EnvSpec, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        check_spaces(entry_of(name), env)
    assert said in str(refused.value)
    able = [other for other, entry in algorithms().items() if entry.supports(env)]
    assert str(refused.value).endswith(f"; use one of: {', '.join(able)}")


@pytest.mark.parametrize(
    ("env", "kinds"),
    [
        (spec((4,), 2), ("discrete",)),
        (spec((4,)), ("small continuous", "continuous")),
        (spec((5,)), ("continuous",)),
        (spec((16, 16, 4), 2), ("grid",)),
        (spec((17, 16, 4), 2), ("pixels",)),
    ],
)
def test_the_kinds_of_environments(env: EnvSpec, kinds: tuple[str, ...]) -> None:
    assert kinds_of(env) == kinds


def test_defaults_of_an_environment_override_those_of_its_kind() -> None:
    ppo = entry_of("ppo").defaults_for(spec((40, 52, 4), 3, "gymnasium:dot"), {})
    assert (ppo["env_steps"], ppo["network"], ppo["entropy_coef"]) == (300_000, "patches", 0.01)
    assert entry_of("td3").defaults_for(spec((17,)), {}) == {}
    assert entry_of("td3").defaults_for(spec((3,)), {})["hidden"] == (64, 64)


@pytest.mark.parametrize(
    ("env", "on"), [(spec((4,), 2), True), (spec((4,)), False), (spec((16, 16, 4), 2), False)]
)
def test_what_keeps_ppo_from_forgetting_is_on_for_discrete_actions_but_not_in_teaching(
    env: EnvSpec, on: bool
) -> None:
    entry = entry_of("ppo")
    of_kind = entry.defaults_for(env, {})
    assert (of_kind.get("advantage_floor", 0.0) > 0) == on
    taught = of_kind | teach_settings("ppo", env)[0]
    assert taught.get("advantage_floor", 0.0) == 0.0
    assert entry.config().advantage_floor == 0.0


@pytest.mark.parametrize(
    ("named", "rows"), [({}, 200), ({"episodes": 3}, 602), ({"episodes": 0}, None)]
)
def test_a_rollout_of_cem_holds_the_counted_episodes(named: dict[str, Any], rows: Any) -> None:
    assert entry_of("cem").defaults_for(spec((3,), 2), named).get("rollout_length") == rows
