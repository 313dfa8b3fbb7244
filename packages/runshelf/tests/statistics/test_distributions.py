"""Quantiles against scipy."""

import pytest
import scipy.special
import scipy.stats

from runshelf.statistics.distributions import (
    beta_quantile,
    incomplete_beta,
    normal_quantile,
    student_below,
    student_quantile,
)


@pytest.mark.parametrize("freedom", [0.7, 1, 1.5, 2, 3, 4.25, 9, 10, 31, 120, 999, 20_000])
def test_student_agrees_with_scipy(freedom: float) -> None:
    for probability in (0.51, 0.75, 0.95, 0.975, 0.995):
        expected = float(scipy.stats.t.ppf(probability, freedom))
        assert student_quantile(freedom, probability) == pytest.approx(expected, rel=1e-8)
    for value in (0.0, 0.1, 1.0, 2.5, 40.0):
        expected = float(scipy.stats.t.cdf(value, freedom))
        assert student_below(value, freedom) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("a", [0.5, 1, 2.5, 30, 3000])
@pytest.mark.parametrize("b", [0.5, 1, 7, 400])
def test_beta_agrees_with_scipy(a: float, b: float) -> None:
    for probability in (1e-6, 0.025, 0.5, 0.975):
        expected = float(scipy.special.betaincinv(a, b, probability))
        assert beta_quantile(probability, a, b) == pytest.approx(expected, rel=1e-8)
    for x in (0.0, 1e-9, 0.2, 0.5, 0.99, 1.0):
        expected = float(scipy.special.betainc(a, b, x))
        assert incomplete_beta(x, a, b) == pytest.approx(expected, abs=1e-11)


def test_normal_quantile_by_hand() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054)
