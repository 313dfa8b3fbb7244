"""Settings outside of the numbers that have a meaning are refused, those at the edge are not."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from backflip.core.errors import UsageError
from backflip.training.bounds import BOUNDS, Bounds, out_of_bounds
from backflip.training.offers import ALGORITHMS
from backflip.training.settings import resolve

# Settings that may be negative: less entropy, too, can be what somebody wants.
FREE = ("entropy_bonus", "entropy_bonus_end", "entropy_per_dimension")
NUMBERS = [
    (name, field.name)
    for name, offer in ALGORITHMS.items()
    for field in dataclasses.fields(offer.config)
    if type(field.default) in (int, float)
]

WHOLE = [
    (name, field.name)
    for name, offer in ALGORITHMS.items()
    for field in dataclasses.fields(offer.config)
    if type(field.default) is int
]


def beyond(bounds: Bounds) -> list[float]:
    """Return numbers around the bounds, all of them outside."""
    below = [bounds.low, bounds.low - 1] if bounds.above else [bounds.low - 1]
    return [*below, bounds.high + 1]


REFUSED = [
    (name, setting, number)
    for name, setting in NUMBERS
    if setting in BOUNDS
    for number in beyond(BOUNDS[setting])
]


@pytest.mark.parametrize(("algorithm", "setting", "number"), REFUSED)
def test_a_number_beyond_its_bounds_is_refused(algorithm: str, setting: str, number: float) -> None:
    with pytest.raises(UsageError, match=f"`{setting}` must (be|lie) .*, got {number}"):
        resolve(ALGORITHMS[algorithm].config, {setting: number})


@pytest.mark.parametrize(("algorithm", "setting"), WHOLE)
def test_no_whole_number_is_more_than_jax_can_count(algorithm: str, setting: str) -> None:
    with pytest.raises(UsageError, match=rf"`{setting}` must lie between \d and [\d,]+, got 40000"):
        resolve(ALGORITHMS[algorithm].config, {setting: 4_000_000_000})


@pytest.mark.parametrize(("algorithm", "setting"), [one for one in NUMBERS if one[1] in FREE])
@pytest.mark.parametrize("number", [-7.0, 7.0])
def test_what_is_free_can_be_any_number(algorithm: str, setting: str, number: float) -> None:
    assert getattr(resolve(ALGORITHMS[algorithm].config, {setting: number}), setting) == number


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_defaults_lie_within_their_bounds(algorithm: str) -> None:
    assert out_of_bounds(ALGORITHMS[algorithm].config()) == []


def test_every_number_has_bounds_that_are_float32() -> None:
    assert {*BOUNDS} == {setting for _, setting in NUMBERS}
    assert all(np.isfinite(np.float32(bounds[:2])).all() for bounds in BOUNDS.values())


@pytest.mark.parametrize(
    ("bounds", "holds", "refuses", "words"),
    [
        (Bounds(1), (1, 10**30), (0, -5), "be at least 1"),
        (Bounds(0, above=True), (1e-9, 5.0), (0.0, -1.0), "be above 0"),
        (Bounds(0, 1), (0, 0.5, 1), (-0.1, 1.1), "lie between 0 and 1"),
        (Bounds(0, 1, above=True), (0.005, 1), (0, 1.5), "be above 0 and at most 1"),
        (Bounds(1, 2_000), (1, 2_000), (0, 2_001), "lie between 1 and 2,000"),
        (Bounds(-1e30, 1e30), (-1e30, 0, 1e30), (-2e30, 2e30), "lie between -1e+30 and 1e+30"),
    ],
)
def test_bounds_by_hand(bounds: Bounds, holds: Any, refuses: Any, words: str) -> None:
    assert all(map(bounds.holds, holds))
    assert not any(map(bounds.holds, refuses))
    assert str(bounds) == words


@pytest.mark.parametrize("given", ["none", (), []])
def test_no_hidden_layers_can_be_asked_for(given: Any) -> None:
    for name, offer in ALGORITHMS.items():
        assert resolve(offer.config, {"hidden": given}).hidden == (), name


def test_one_row_a_minibatch_is_refused() -> None:
    """Its advantage, less its mean, would be 0."""
    few = {"num_envs": 2, "rollout_length": 4}
    with pytest.raises(UsageError, match=r"`minibatches` must leave at least 2 .* got 8"):
        resolve(ALGORITHMS["ppo"].config, {**few, "minibatches": 8})
    assert resolve(ALGORITHMS["ppo"].config, {**few, "minibatches": 4})


@pytest.mark.parametrize("number", [10**400, math.inf, math.nan])
def test_numbers_beyond_a_float_are_not_finite(number: Any) -> None:
    with pytest.raises(UsageError, match="`learning_rate` must be a finite number"):
        resolve(ALGORITHMS["ppo"].config, {"learning_rate": number})
