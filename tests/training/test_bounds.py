"""Settings outside of the numbers that have a meaning are refused, those at the edge are not."""

import dataclasses
import math
from typing import Any

import pytest

from backflip.core.errors import UsageError
from backflip.training.bounds import BOUNDS, FREE, Bounds, out_of_bounds
from backflip.training.offers import ALGORITHMS
from backflip.training.settings import resolve

NUMBERS = [
    (name, field.name, type(field.default))
    for name, offer in ALGORITHMS.items()
    for field in dataclasses.fields(offer.config)
    if type(field.default) in (int, float)
]


@pytest.mark.parametrize(("algorithm", "setting", "kind"), NUMBERS)
def test_every_number_has_bounds_and_is_refused_beyond_them(
    algorithm: str, setting: str, kind: type
) -> None:
    if setting in FREE:
        return
    bounds, config = BOUNDS[setting], ALGORITHMS[algorithm].config
    low = kind(bounds.low) if bounds.above else kind(bounds.low) - 1
    for beyond in (low, -7, *([] if math.isinf(bounds.high) else [bounds.high + 1])):
        if not bounds.holds(beyond):
            with pytest.raises(UsageError, match=f"`{setting}` must (be|lie) .*, got {beyond}"):
                resolve(config, {setting: beyond})
    assert not out_of_bounds(config()), "its own default"


def test_what_is_bounded_or_free_exists() -> None:
    assert {*BOUNDS, *FREE} == {setting for _, setting, _ in NUMBERS}


@pytest.mark.parametrize(
    ("bounds", "holds", "refuses", "words"),
    [
        (Bounds(1), (1, 10**30), (0, -5), "be at least 1"),
        (Bounds(0, above=True), (1e-9, 5.0), (0.0, -1.0), "be above 0"),
        (Bounds(0, 1), (0, 0.5, 1), (-0.1, 1.1), "lie between 0 and 1"),
        (Bounds(0, 1, above=True), (0.005, 1), (0, 1.5), "be above 0 and at most 1"),
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
