"""Means over seeds and their intervals: by hand and by simulation."""

import numpy as np
import pytest

from runshelf.statistics.intervals import (
    interquartile_mean,
    interval,
    iqm_interval,
    mean_interval,
)


def test_mean_and_interval_by_hand() -> None:
    """Of 1, 2, 3: s = 1, so the half width is t(2) / √3 = 2.484."""
    found = mean_interval(np.array([[1.0], [2.0], [3.0]]))
    assert found.centre[0] == 2.0
    assert found.high[0] - found.centre[0] == pytest.approx(4.302653 / 3**0.5)
    assert found.centre[0] - found.low[0] == pytest.approx(4.302653 / 3**0.5)


def test_the_interval_of_five_seeds_covers_the_mean_in_95_percent() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=(5, 20_000))
    found = mean_interval(values)
    held = ((found.low < 3.0) & (found.high > 3.0)).mean()
    assert held == pytest.approx(0.95, abs=0.006)


def test_a_seed_without_a_value_is_not_counted() -> None:
    found = mean_interval(np.array([[1.0, np.nan], [3.0, 5.0], [np.inf, np.nan]]))
    assert found.seeds.tolist() == [2, 1]
    assert found.centre.tolist() == [2.0, 5.0]
    assert np.isfinite(found.low[0])
    assert np.isnan(found.low[1])


def test_without_values_everything_is_nan() -> None:
    for centre in ("mean", "iqm"):
        found = interval(np.full((3, 2), np.nan), centre)
        assert np.isnan([found.centre, found.low, found.high]).all()
        assert found.seeds.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 30], 11.0),  # fewer than four: the plain mean
        ([1, 2, 4, 100], 3.0),
        ([1, 2, 3, 4, 100], 3.0),
        ([-9, 1, 2, 3, 4, 5, 6, 99], 3.5),
    ],
)
def test_interquartile_mean_by_hand(values: list[float], expected: float) -> None:
    column = np.array(values, float)[:, None]
    assert interquartile_mean(column)[0] == expected
    assert interquartile_mean(np.concatenate([column, [[np.nan]]]))[0] == expected


def test_bootstrap_is_a_percentile_bootstrap_over_whole_seeds() -> None:
    """Compare with a plain implementation: resample seeds, then take percentiles of their means."""
    values = np.random.default_rng(2).normal(size=(8, 3))
    found = iqm_interval(values)
    draws = np.random.default_rng(0).integers(8, size=(400, 8))
    means = np.array([[sorted(values[draw, at])[2:6] for at in range(3)] for draw in draws]).mean(
        -1
    )
    np.testing.assert_allclose(found.low, np.percentile(means, 2.5, axis=0))
    np.testing.assert_allclose(found.high, np.percentile(means, 97.5, axis=0))


def test_one_seed_has_no_interval() -> None:
    for centre in ("mean", "iqm"):
        found = interval(np.array([[1.0, 2.0]]), centre)
        assert found.centre.tolist() == [1.0, 2.0]
        assert np.isnan([found.low, found.high]).all()
