"""Intervals of k of n: by hand, against scipy, and the promise of the exact one."""

import math

import numpy as np
import pytest
import scipy.stats

from runshelf.statistics.proportions import clopper_pearson, wilson


def test_by_hand() -> None:
    """Three of three exactly: p³ = .025 at the lower end; Wilson's: 3 / (3 + z²)."""
    assert clopper_pearson(3, 3).low == pytest.approx(0.025 ** (1 / 3))
    assert wilson(3, 3).low == pytest.approx(3 / (3 + 1.959963984540054**2))
    assert (clopper_pearson(3, 3).high, wilson(3, 3).high) == (1.0, 1.0)
    assert (clopper_pearson(0, 4).low, wilson(0, 4).low) == (0.0, 0.0)


@pytest.mark.parametrize("n", [1, 2, 7, 100, 3000])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_both_agree_with_scipy(n: int, confidence: float) -> None:
    for k in sorted({0, 1, n // 3, n - 1, n}):
        test = scipy.stats.binomtest(k, n)
        for ours, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
            expected = test.proportion_ci(confidence, method)
            found = ours(k, n, confidence)
            assert found.value == k / n
            assert found.low == pytest.approx(expected.low, abs=1e-9)
            assert found.high == pytest.approx(expected.high, abs=1e-9)


def test_the_exact_interval_never_covers_less_than_it_says() -> None:
    n, grid = 9, np.linspace(0.001, 0.999, 333)
    intervals = [clopper_pearson(k, n) for k in range(n + 1)]
    held = [[one.low <= p <= one.high for one in intervals] for p in grid]
    chance = scipy.stats.binom.pmf(np.arange(n + 1), n, grid[:, None])
    assert (np.array(held) * chance).sum(axis=1).min() >= 0.95


def test_no_runs_have_no_proportion_and_impossible_counts_are_refused() -> None:
    for interval in (wilson, clopper_pearson):
        assert math.isnan(interval(0, 0).value)
        assert not interval(0, 0).has_interval
        for k, n in ((4, 3), (-1, 3), (1, 0)):
            with pytest.raises(ValueError, match=f"got {k} successes of {n}"):
                interval(k, n)
