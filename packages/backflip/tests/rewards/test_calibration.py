"""Tests of `backflip.rewards.calibration`."""

import numpy as np
import pytest

from backflip.rewards.calibration import (
    calibration_error,
    left_probability,
    reliability,
    spearman,
)


def test_the_reliability_table_by_hand():
    predicted = np.array([0.1, 0.15, 0.5, 0.95, 1.0])
    table = reliability(predicted, np.array([0.0, 1.0, 0.5, 1.0, 1.0]))
    assert [one.answers for one in table] == [2, 0, 1, 0, 2]
    assert (table[0].predicted, table[0].observed) == (pytest.approx(0.125), 0.5)
    assert (table[1].predicted, table[1].observed) == (None, None)
    # 2/5 |.125 - .5| + 1/5 |.5 - .5| + 2/5 |.975 - 1|
    assert calibration_error(table) == pytest.approx(0.4 * 0.375 + 0.4 * 0.025)


def test_no_forecast_has_no_error():
    assert calibration_error(reliability(np.zeros(0), np.zeros(0))) is None


def test_forecasts_that_come_true_as_often_as_they_say_have_a_small_error():
    rng = np.random.default_rng(0)
    predicted = rng.random(50_000)
    came_true = (rng.random(50_000) < predicted).astype(float)
    assert calibration_error(reliability(predicted, came_true, 10)) < 0.01
    assert calibration_error(reliability(predicted, 1 - came_true, 10)) == pytest.approx(0.5, 0.05)


def test_the_probability_of_left_has_a_tenth_of_random_answers():
    np.testing.assert_allclose(
        left_probability(np.array([[0.0], [90.0], [-90.0]])), [0.5, 0.95, 0.05]
    )
    assert left_probability(np.array([[90.0, -90.0]]))[0] == pytest.approx(0.5)


def test_spearman_by_hand():
    # Ranks 1 2 3 4 and 2 1 4 3: 1 - 6 Σd² / (n (n² - 1)) = 1 - 24 / 60.
    assert spearman(np.array([1, 5, 7, 90]), np.array([2, 1, 9, 8])) == pytest.approx(0.6)
    assert spearman(np.arange(5), np.exp(np.arange(5))) == pytest.approx(1.0)
    assert spearman(np.arange(5), -np.arange(5)) == pytest.approx(-1.0)


def test_ties_share_the_mean_rank():
    # Ranks 1.5 1.5 3 and 1 2 3.
    expected = np.corrcoef([1.5, 1.5, 3], [1, 2, 3])[0, 1]
    assert spearman(np.array([0, 0, 1]), np.array([4, 5, 6])) == pytest.approx(expected)


def test_constant_values_have_no_correlation():
    assert spearman(np.ones(3), np.arange(3)) is None
    assert spearman(np.arange(1), np.arange(1)) is None


def test_values_that_are_not_finite_have_no_correlation():
    assert spearman(np.array([0.0, np.nan, 1.0]), np.arange(3)) is None
