"""`env_checks` finds the faults of faulty environments, and none in a correct one."""

from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.inspect.faulty_envs import (
    DelayedReward,
    IgnoredDimension,
    Line,
    NoEffect,
    TwinActions,
    Unseeded,
    maker_of,
)

from backflip.core.spaces import Box, Discrete
from backflip.inspect.env_checks import REPEATED, audit_actions, repeatability, variants


def audit(kind: type[Line]) -> Any:
    make = maker_of(kind)
    env = make(1)
    env.close()
    return audit_actions(make, env.spec.action, 0)


@pytest.mark.medium
def test_correct_environment_is_repeatable_and_its_seeds_differ() -> None:
    env = maker_of(Line)(4)
    found = repeatability(env, 0)
    assert found == (REPEATED, None, 4, 4, 4)
    env.close()


@pytest.mark.medium
def test_unseeded_randomness_is_found() -> None:
    env = maker_of(Unseeded)(2)
    assert repeatability(env, 0).first_difference == 1  # the reset is still the same
    env.close()


def test_every_action_of_a_correct_environment_has_an_immediate_effect() -> None:
    found = audit(Line)
    assert [choice.after for choice in found.choices] == [1, 1, 1]
    assert [choice.same_as for choice in found.choices] == [None] * 3
    assert found.reward_after == 1
    assert found.comparable


def test_actions_with_equal_effects_are_found() -> None:
    found = audit(TwinActions)
    assert [choice.same_as for choice in found.choices] == [None, None, "action 0"]


def test_actions_without_effect_are_found() -> None:
    found = audit(NoEffect)
    assert [choice.after for choice in found.choices] == [None] * 3
    assert found.reward_after is None


def test_delay_of_rewards_is_measured() -> None:
    """The reward of the second env step depends on the first action."""
    found = audit(DelayedReward)
    assert found.reward_after == 2
    assert [choice.after for choice in found.choices] == [
        1,
        1,
        1,
    ]  # observations differ immediately


@pytest.mark.medium
def test_every_dimension_of_a_continuous_action_is_tried() -> None:
    found = audit(IgnoredDimension)
    assert [(choice.name, choice.after) for choice in found.choices] == [
        ("number 0", 1),
        ("number 1", None),
    ]


@pytest.mark.medium
def test_rows_with_unseeded_randomness_are_not_comparable() -> None:
    assert not audit(Unseeded).comparable


def test_variants_are_the_middle_and_the_ends() -> None:
    box = Box(
        np.array([-2, -np.inf], np.float32), np.array([4, np.inf], np.float32), np.dtype(np.float32)
    )
    tried = [list(map(float, action)) for action in variants(box)]
    assert tried == [[1, 0], [-2, 0], [4, 0], [1, -1], [1, 1]]
    assert [int(action) for action in variants(Discrete(3))] == [0, 1, 2]
    assert len(variants(Discrete(1000))) == 64


@pytest.mark.medium
def test_given_action_names_are_used() -> None:
    make = maker_of(Line)
    env = make(1)
    found = audit_actions(make, env.spec.action, 0, ["left", "right", "stand"])
    env.close()
    assert [choice.name for choice in found.choices] == ["left", "right", "stand"]
