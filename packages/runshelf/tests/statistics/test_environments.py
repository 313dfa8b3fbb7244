"""Scores on several environments, against scipy and against the definitions done slowly."""

import math

import numpy as np
import pytest
import scipy.stats

from runshelf.statistics import aggregates
from runshelf.statistics.aggregates import AGGREGATES, estimate, performance_profile
from runshelf.statistics.improvement import probability_of_improvement
from runshelf.statistics.scores import Scores

NAMES = ("ant", "hopper", "walker")
MATRIX = np.random.default_rng(0).gamma(2.0, 0.4, size=(6, 3))
SCORES = Scores.of_matrix(MATRIX, NAMES)
UNEVEN = Scores({"ant": MATRIX[:, 0], "hopper": MATRIX[:4, 1], "walker": MATRIX[:5, 2]})


def test_episodes_cannot_pass_for_runs() -> None:
    with pytest.raises(ValueError, match="average the episodes of each run first"):
        Scores.of_matrix(np.zeros((5, 3, 100)), NAMES)
    with pytest.raises(ValueError, match="ant: expected one dimension, got 2"):
        Scores({"ant": np.zeros((5, 100))})


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({}, "at least one environment"),
        ({"ant": np.array([])}, "ant: expected at least one run"),
        ({"ant": np.array([1.0, np.nan])}, "count failures first"),
    ],
)
def test_scores_that_are_none_are_refused(runs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scores(runs)


def test_columns_must_have_names() -> None:
    for names in (NAMES[:2], ("ant", "ant", "hopper")):
        with pytest.raises(ValueError, match="got 3 columns"):
            Scores.of_matrix(MATRIX, names)


def test_scores_do_not_change() -> None:
    matrix = MATRIX.copy()
    scores = Scores.of_matrix(matrix, NAMES)
    matrix[:] = 0
    np.testing.assert_array_equal(scores.runs["ant"], MATRIX[:, 0])
    with pytest.raises(ValueError, match="read-only"):
        scores.runs["ant"][0] = 1.0


def test_normalised_by_hand() -> None:
    scores = Scores({"ant": np.array([10.0, 30.0]), "pong": np.array([1.0])})
    found = scores.normalised({"ant": (10.0, 20.0), "pong": (3.0, -1.0)})
    assert found.runs["ant"].tolist() == [0.0, 2.0]
    assert found.runs["pong"].tolist() == [0.5]
    with pytest.raises(ValueError, match="for pong"):
        scores.normalised({"ant": (0.0, 1.0)})
    with pytest.raises(ValueError, match="pong: expected two different"):
        scores.normalised({"ant": (0.0, 1.0), "pong": (1.0, 1.0)})


def test_point_estimates_by_definition() -> None:
    means = MATRIX.mean(axis=0)
    expected = {
        "iqm": scipy.stats.trim_mean(MATRIX, 0.25, axis=None),
        "mean": means.mean(),
        "median": np.median(means),
        "optimality_gap": 1 - np.mean([min(score, 1.0) for score in MATRIX.ravel()]),
    }
    for name, value in expected.items():
        assert estimate(SCORES, AGGREGATES[name]).value == pytest.approx(value)


def test_uneven_numbers_of_runs() -> None:
    pooled = np.concatenate([*UNEVEN.runs.values()])
    expected = scipy.stats.trim_mean(pooled, 0.25)
    assert estimate(UNEVEN, aggregates.interquartile_mean).value == pytest.approx(expected)
    assert estimate(UNEVEN, aggregates.interquartile_mean).n == 15
    means = [runs.mean() for runs in UNEVEN.runs.values()]
    assert estimate(UNEVEN, aggregates.median).value == pytest.approx(np.median(means))


@pytest.mark.slow
def test_intervals_are_those_of_a_plain_stratified_bootstrap() -> None:
    """Resample one at a time with other random numbers: ends agree within the noise."""
    rng = np.random.default_rng(9)
    drawn = []
    for _ in range(4000):
        rows = [rng.choice(runs, len(runs)) for runs in UNEVEN.runs.values()]
        drawn.append(scipy.stats.trim_mean(np.concatenate(rows), 0.25))
    found = estimate(UNEVEN, aggregates.interquartile_mean)
    width = found.high - found.low
    assert found.low == pytest.approx(np.percentile(drawn, 2.5), abs=0.08 * width)
    assert found.high == pytest.approx(np.percentile(drawn, 97.5), abs=0.08 * width)
    assert found == estimate(UNEVEN, aggregates.interquartile_mean)


def test_the_interval_of_the_mean_is_stratified() -> None:
    """Environments far apart add nothing to the width, as they would if runs were pooled."""
    far = Scores({name: runs + 1000 * i for i, (name, runs) in enumerate(SCORES.runs.items())})
    near, apart = estimate(SCORES, aggregates.mean), estimate(far, aggregates.mean)
    assert apart.high - apart.low == pytest.approx(near.high - near.low)


def test_a_single_run_on_an_environment_gives_no_interval() -> None:
    single = Scores({"ant": MATRIX[:, 0], "hopper": MATRIX[:1, 1]})
    assert not estimate(single, aggregates.mean).has_interval
    assert not probability_of_improvement(single, single).has_interval
    profile = performance_profile(single, np.array([0.5]))
    assert math.isnan(profile.low[0])
    assert profile.share[0] == (np.concatenate([MATRIX[:, 0], MATRIX[:1, 1]]) > 0.5).mean()


def test_profile_by_definition() -> None:
    thresholds = np.array([-1.0, MATRIX[2, 1], 0.7, 99.0])
    found = performance_profile(SCORES, thresholds)
    expected = [np.mean([score > one for score in MATRIX.ravel()]) for one in thresholds]
    np.testing.assert_allclose(found.share, expected)
    assert (found.low <= found.share).all()
    assert (found.high >= found.share).all()
    assert found.low[0] == found.high[0] == 1.0


def test_probability_of_improvement_by_definition() -> None:
    shares = []
    for name in NAMES:
        pairs = [(x > y) + (x == y) / 2 for x in SCORES.runs[name] for y in UNEVEN.runs[name]]
        shares.append(np.mean(pairs))
    found = probability_of_improvement(SCORES, UNEVEN)
    assert found.value == pytest.approx(np.mean(shares))
    assert found.low < found.value < found.high


@pytest.mark.medium
def test_improvement_resamples_both_groups() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=8), rng.normal(0.5, 1.0, size=12)
    drawn = []
    for _ in range(3000):
        one, other = rng.choice(x, 8), rng.choice(y, 12)
        drawn.append(((one[:, None] > other) + (one[:, None] == other) / 2).mean())
    found = probability_of_improvement(Scores({"ant": x}), Scores({"ant": y}))
    assert found.low == pytest.approx(np.percentile(drawn, 2.5), abs=0.03)
    assert found.high == pytest.approx(np.percentile(drawn, 97.5), abs=0.03)


def test_improvement_needs_the_same_environments() -> None:
    with pytest.raises(ValueError, match="only one of the groups has runs on walker"):
        probability_of_improvement(SCORES, Scores(dict.fromkeys(("ant", "hopper"), MATRIX[:, 0])))
