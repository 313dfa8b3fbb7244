"""Every setting of every algorithm: its bounds, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

from backflip.algorithms.registry import algorithms
from backflip.core.settings import Bounds, Setting
from backflip.training.algorithm_config import configure
from runshelf.errors import UsageError

# Settings that may be negative: a user may want to lower the entropy.
LOGARITHMS = ("initial_log_std", "least_log_std")
FREE = ("entropy_coef", "entropy_coef_end", "target_entropy_per_dimension")
NUMBERS = [
    (name, setting)
    for name, entry in algorithms().items()
    for setting in entry.settings.values()
    if setting.kind in (int, float)
]


def beyond(bounds: Bounds) -> list[float]:
    """Return numbers around the bounds, all of them outside."""
    below = [bounds.low, bounds.low - 1] if bounds.above else [bounds.low - 1]
    return [*below, bounds.high + 1]


REFUSED = [
    (name, setting.name, number)
    for name, setting in NUMBERS
    for number in beyond(setting.bounds or Bounds(0))
]


@pytest.mark.parametrize(("algorithm", "setting", "number"), REFUSED)
def test_a_number_beyond_its_bounds_is_refused(algorithm: str, setting: str, number: float) -> None:
    with pytest.raises(UsageError, match=f"`{setting}` must (be|lie) .*, got {number}"):
        configure(algorithms()[algorithm], {setting: number})


@pytest.mark.parametrize(("algorithm", "setting"), NUMBERS, ids=str)
def test_every_number_has_bounds_that_its_type_can_hold(algorithm: str, setting: Setting) -> None:
    assert setting.bounds is not None
    assert np.isfinite(np.asarray(setting.bounds[:2], np.float32)).all()
    assert setting.kind is float or setting.bounds.high < 2**31  # JAX counts in int32
    assert (setting.name in FREE) == (setting.bounds.low < 0 and setting.name not in LOGARITHMS), (
        algorithm
    )


@pytest.mark.parametrize("algorithm", algorithms())
def test_the_defaults_are_valid(algorithm: str) -> None:
    entry = algorithms()[algorithm]
    found = {name: setting.problem(setting.default) for name, setting in entry.settings.items()}
    assert set(found.values()) == {None}


@pytest.mark.parametrize("given", ["none", (), []])
def test_no_hidden_layers_can_be_asked_for(given: Any) -> None:
    for name, entry in algorithms().items():
        config: Any = configure(entry, {"hidden": given})
        assert config.hidden == (), name


def test_one_row_a_minibatch_is_refused() -> None:
    """Its advantage, less its mean, would be 0."""
    few = {"num_envs": 2, "rollout_length": 4}
    with pytest.raises(UsageError, match=r"`minibatches` must leave at least 2 .* got 8"):
        configure(algorithms()["ppo"], {**few, "minibatches": 8})
    assert configure(algorithms()["ppo"], {**few, "minibatches": 4})


@pytest.mark.parametrize("number", [10**400, math.inf, math.nan])
def test_numbers_beyond_a_float_are_not_finite(number: Any) -> None:
    with pytest.raises(UsageError, match="`learning_rate` must be a finite number"):
        configure(algorithms()["ppo"], {"learning_rate": number})
