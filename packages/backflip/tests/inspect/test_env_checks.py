"""The audit finds what is wrong with environments made wrong on purpose, and nothing elsewhere."""

from typing import Any

import numpy as np
from packages.backflip.tests.inspect.envs import (
    Deaf,
    Delayed,
    Idle,
    Ignored,
    Line,
    Unseeded,
    making,
)

from backflip.core.spec import Box, Discrete
from backflip.inspect.env_checks import REPEATED, audit_actions, repeatability, variants


def audit(kind: type[Line]) -> Any:
    make = making(kind)
    env = make(1)
    env.close()
    return audit_actions(make, env.spec.action, 0)


def test_a_right_environment_is_repeatable_and_its_seeds_differ() -> None:
    env = making(Line)(4)
    found = repeatability(env, 0)
    assert found == (REPEATED, None, 4, 4, 4)
    env.close()


def test_randomness_that_no_seed_reaches_is_found() -> None:
    env = making(Unseeded)(2)
    assert repeatability(env, 0).first_difference == 1  # the reset is still the same
    env.close()


def test_every_action_of_a_right_environment_matters_at_once() -> None:
    found = audit(Line)
    assert [choice.after for choice in found.choices] == [1, 1, 1]
    assert [choice.same_as for choice in found.choices] == [None] * 3
    assert found.reward_after == 1
    assert found.comparable


def test_actions_that_do_the_same_are_found() -> None:
    found = audit(Idle)
    assert [choice.same_as for choice in found.choices] == [None, None, "action 0"]


def test_actions_that_do_nothing_are_found() -> None:
    found = audit(Deaf)
    assert [choice.after for choice in found.choices] == [None] * 3
    assert found.reward_after is None


def test_a_reward_that_comes_later_is_told_as_such() -> None:
    """What was done first is paid for at the second env step."""
    found = audit(Delayed)
    assert found.reward_after == 2
    assert [choice.after for choice in found.choices] == [1, 1, 1]  # what is seen differs at once


def test_of_a_continuous_action_every_number_is_tried() -> None:
    found = audit(Ignored)
    assert [(choice.name, choice.after) for choice in found.choices] == [
        ("number 0", 1),
        ("number 1", None),
    ]


def test_rows_that_differ_without_a_reason_cannot_be_compared() -> None:
    assert not audit(Unseeded).comparable


def test_variants_are_the_middle_and_the_ends() -> None:
    box = Box(
        np.array([-2, -np.inf], np.float32), np.array([4, np.inf], np.float32), np.dtype(np.float32)
    )
    tried = [list(map(float, action)) for action in variants(box)]
    assert tried == [[1, 0], [-2, 0], [4, 0], [1, -1], [1, 1]]
    assert [int(action) for action in variants(Discrete(3))] == [0, 1, 2]
    assert len(variants(Discrete(1000))) == 64


def test_a_space_with_names_is_told_by_them() -> None:
    make = making(Line)
    env = make(1)
    found = audit_actions(make, env.spec.action, 0, ["left", "right", "stand"])
    env.close()
    assert [choice.name for choice in found.choices] == ["left", "right", "stand"]
