"""The interval of a mean that comparisons use."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from runshelf.statistics.intervals import mean_interval
from runshelf.statistics.mean import joined_interval, mean_estimate

RETURNS = np.array([3.0, 1.0, 2.0, 14.0, 2.5])


def test_two_runs_have_students_interval() -> None:
    found = mean_estimate(np.array([1.0, 3.0]))
    assert found.value == 2.0
    assert found.high == pytest.approx(2.0 + 12.706204736)
    assert found.low == pytest.approx(2.0 - 12.706204736)


def test_the_long_side_is_the_root_of_halls_cubic() -> None:
    """Solve the cubic itself for the mean: W + g W²/3 + g² W³/27 + g/(6n) = ± t/√n."""
    n, s = len(RETURNS), RETURNS.std(ddof=1)
    g, t = float(scipy.stats.skew(RETURNS)), scipy.stats.t.ppf(0.975, n - 1)

    def cubic(mean: float) -> float:
        w = (RETURNS.mean() - mean) / s
        return w + g * w**2 / 3 + g**2 * w**3 / 27 + g / (6 * n)

    high = scipy.optimize.brentq(lambda mean: cubic(mean) + t / n**0.5, -1e3, 1e3)
    found = mean_estimate(RETURNS)
    assert found.high == pytest.approx(high)
    assert found.low == pytest.approx(RETURNS.mean() - t * s / n**0.5)  # Student's is lower here


def test_it_holds_students_interval() -> None:
    values = np.random.default_rng(0).exponential(size=(6, 500))
    student, joined = mean_interval(values), joined_interval(values)
    assert (joined.low <= student.low + 1e-12).all()
    assert (joined.high >= student.high - 1e-12).all()


def test_unit_order_and_sign_do_not_matter() -> None:
    low, high = mean_estimate(RETURNS)[1:3]
    turned = mean_estimate(1e9 - 1e6 * RETURNS[::-1])
    assert turned.low == pytest.approx(1e9 - 1e6 * high)
    assert turned.high == pytest.approx(1e9 - 1e6 * low)


def test_symmetric_returns_have_students_interval() -> None:
    values = np.array([[1.0, 2.0, 3.0, 3.0 + 1e-12]]).T - [2.0]
    for runs in (values[:3], values[[0, 1, 3]]):
        joined, student = joined_interval(runs), mean_interval(runs)
        np.testing.assert_allclose(joined.high, student.high, rtol=1e-6)
        np.testing.assert_allclose(joined.low, student.low, rtol=1e-6)


@pytest.mark.parametrize("value", [0.1, -7.3, 1e300, 0.0])
def test_equal_returns_give_no_width(value: float) -> None:
    found = mean_estimate(np.full(7, value))
    assert found == (value, value, value, 7)
    assert found.has_interval
    assert not found.has_width


def test_one_run_has_no_interval_and_no_run_no_mean() -> None:
    one, none = mean_estimate(np.array([4.0, np.nan])), mean_estimate(np.array([np.nan]))
    assert (one.value, one.n, one.has_interval) == (4.0, 1, False)
    assert math.isnan(none.value)
    assert (none.n, none.has_interval, none.has_width) == (0, False, False)


def test_huge_returns_do_not_overflow() -> None:
    found = mean_estimate(np.array([1e200, 2e200, 9e200]))
    assert np.isfinite(found[:3]).all()


DISTRIBUTIONS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "lognormal": (lambda rng, shape: np.exp(0.8 * rng.normal(size=shape)), math.exp(0.32)),
    "works or fails": (lambda rng, shape: (rng.random(shape) < 0.7).astype(float), 0.7),
}
# At five runs of which 30 % fail, 16.8 % + 0.2 % of groups are all alike; no interval sees that.
BARS = {
    ("normal", 5): 0.93,
    ("normal", 10): 0.94,
    ("lognormal", 5): 0.88,
    ("lognormal", 10): 0.90,
    ("works or fails", 5): 0.825,
    ("works or fails", 10): 0.93,
}


@pytest.mark.parametrize(("kind", "n"), BARS)
def test_coverage_reaches_its_bar(kind: str, n: int) -> None:
    draw, truth = DISTRIBUTIONS[kind]
    found = joined_interval(draw(np.random.default_rng(3), (n, 20_000)))
    held = ((found.low <= truth + 1e-9) & (found.high >= truth - 1e-9)).mean()
    assert held >= BARS[kind, n]
