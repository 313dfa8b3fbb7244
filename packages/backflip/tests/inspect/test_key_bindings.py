"""Key bindings follow from the names of actions."""

import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.inspect.key_bindings import actions, dials

SEEN = Box(np.zeros(1, np.float32), np.ones(1, np.float32), np.dtype(np.float32))


def spec(env_id: str, count: int) -> EnvSpec:
    return EnvSpec(env_id, SEEN, Discrete(count), 10)


@pytest.mark.parametrize(
    ("env_id", "count", "keys"),
    [
        ("CartPole-v1", 2, [["ArrowLeft"], ["ArrowRight"]]),
        ("gymnasium:MountainCar-v0", 3, [["ArrowLeft"], [], ["ArrowRight"]]),
        ("dot", 5, [[], ["ArrowDown"], ["ArrowRight"], ["ArrowUp"], ["ArrowLeft"]]),
        ("mine:Own", 2, [["ArrowLeft"], ["ArrowRight"]]),
        ("mine:Own", 3, [["ArrowLeft"], [], ["ArrowRight"]]),
        ("mine:Own", 1, [[]]),
        ("mine:Own", 4, [None] * 4),
        ("MinAtar/Breakout-v1", 3, [[], ["ArrowLeft"], ["ArrowRight"]]),
        ("Taxi-v3", 6, [["ArrowDown"], ["ArrowUp"], ["ArrowRight"], ["ArrowLeft"], None, None]),
    ],
)
def test_keys_of_discrete_actions(env_id: str, count: int, keys: list[list[str] | None]) -> None:
    found = actions(spec(env_id, count), None)
    assert [action.keys for action in found] == keys
    assert [action.digit for action in found] == [str(n) for n in range(count)]


def test_names_of_atari_actions_become_key_combinations() -> None:
    found = actions(spec("ALE/X-v5", 4), ["NOOP", "FIRE", "UPRIGHT", "DOWNLEFTFIRE"])
    held = [None if action.keys is None else sorted(action.keys) for action in found]
    assert held == [[], [" "], ["ArrowRight", "ArrowUp"], [" ", "ArrowDown", "ArrowLeft"]]


def test_only_the_first_ten_actions_have_digits() -> None:
    found = actions(spec("x", 12), None)
    assert [action.digit for action in found][8:] == ["8", "9", "", ""]
    assert found[11].name == "action 11"


def test_dimensions_of_a_continuous_action_have_bounds_and_keys() -> None:
    low, high = np.array([-2, -np.inf], np.float32), np.array([4, np.inf], np.float32)
    first, second = dials(Box(low, high, low.dtype))
    assert (first.low, first.high, first.keys) == (-2, 4, ["ArrowLeft", "ArrowRight"])
    assert (second.low, second.high, second.keys) == (-1, 1, ["ArrowDown", "ArrowUp"])
