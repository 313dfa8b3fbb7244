"""Estimates of comparisons: against definitions, SciPy, and by simulation."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from runshelf.comparison import estimating
from runshelf.comparison.adastop import looks_at
from runshelf.comparison.conclusions import enough_seeds, least_p

A = [3.0, 5.5, 1.25, 9.0, 4.0, 4.5]
B = [2.0, 0.5, 3.5, 1.0, 2.5]


def test_mean_and_share_are_those_of_scipy() -> None:
    found = estimating.mean(A)
    low, high = scipy.stats.t.interval(0.95, 5, np.mean(A), scipy.stats.sem(A))
    assert found == (pytest.approx(np.mean(A)), pytest.approx(low), pytest.approx(high))
    share = estimating.share(7, 10)
    wilson = scipy.stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert share == (0.7, pytest.approx(wilson.low), pytest.approx(wilson.high))
    assert estimating.share(0, 5).low == 0.0


def test_welch_is_that_of_scipy_with_fewer_degrees_of_freedom() -> None:
    reference = scipy.stats.ttest_ind(A, B, equal_var=False)
    found = estimating.difference(A, B)
    exact = reference.confidence_interval(0.95)
    assert found.value == pytest.approx(np.mean(A) - np.mean(B))
    # ν is rounded down, so the interval is a little wider and p a little larger.
    assert exact.low - 0.1 < found.low <= exact.low
    assert reference.pvalue <= estimating.welch_p(A, B) < reference.pvalue + 0.01
    same = estimating.difference([1.0, 1.0], [2.0, 2.0])
    assert math.isnan(same.low)
    assert math.isnan(estimating.welch_p([1.0, 1.0], [2.0, 2.0]))


def test_permutation_is_the_count_of_all_divisions() -> None:
    both = np.array([*A, *B])
    seen = abs(np.mean(A) - np.mean(B))
    extreme = total = 0
    for chosen in itertools.combinations(range(len(both)), len(A)):
        rest = [n for n in range(len(both)) if n not in chosen]
        apart = abs(both[list(chosen)].mean() - both[rest].mean())
        extreme, total = extreme + (apart >= seen - 1e-12), total + 1
    assert estimating.permutation_p(A, B) == pytest.approx(extreme / total)
    assert estimating.permutation_p([1.0] * 5, [1.0] * 5) == 1.0
    many = np.random.default_rng(0).normal(size=(2, 20))
    drawn = estimating.permutation_p(*many.tolist())
    exact = scipy.stats.ttest_ind(*many).pvalue
    assert drawn == pytest.approx(exact, abs=0.02)


def test_probability_of_improvement_counts_pairs() -> None:
    found = estimating.improvement([1.0, 2.0, 3.0], [2.0, 0.0])
    assert found.value == pytest.approx((0 + 1 + 0.5 + 1 + 1 + 1) / 6)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_holm_by_hand() -> None:
    assert estimating.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert estimating.holm([0.9, 0.8]) == [1.0, 1.0]
    assert estimating.holm([]) == []


def test_environments_have_the_same_weight() -> None:
    scores = [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0]]
    found = estimating.pooled(scores, np.array([0.5]))
    assert found.mean.value == pytest.approx(0.5)
    assert found.profile[0][0] == pytest.approx(0.5)
    # The middle half of the weight: a quarter of each environment.
    assert found.iqm.value == pytest.approx(0.5)
    even = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    assert estimating.pooled(even, np.array([0.5])).iqm.value == pytest.approx(3.5)
    assert estimating.pooled_improvement(scores, scores).value == pytest.approx(0.5)


def test_what_few_seeds_can_show() -> None:
    assert [least_p(n, n) for n in (3, 4, 5)] == pytest.approx([0.1, 2 / 70, 2 / 252])
    assert least_p(2, 3) == pytest.approx(0.1)
    assert [enough_seeds(0.05, 1), enough_seeds(0.05, 3), enough_seeds(0.01, 1)] == [4, 5, 5]


def looks(a: list[float], b: list[float], of: int, each: int) -> list[bool]:
    found = looks_at({"A": a, "B": b}, looks=of, seeds_per_look=each, alpha=0.05)
    return [bool(look.rejected) for look in found]


def test_adastop_with_four_seeds_a_look_cannot_show_anything_at_the_first_of_five() -> None:
    a, b = list(range(100, 125)), list(range(25))
    assert looks(a[:4], b[:4], 5, 4) == [False]
    assert looks(a[:5], b[:5], 5, 5) == [True]
    assert looks(a[:8], b[:8], 5, 4) == [False, True]
    assert looks(a[:3], b[:3], 5, 4) == []


def test_adastop_stops_with_three_groups_only_for_the_decided_pairs() -> None:
    rng = np.random.default_rng(1)
    values = {
        "A": rng.normal(10, 1, 10).tolist(),
        "B": rng.normal(0, 1, 10).tolist(),
        "C": rng.normal(0, 1, 10).tolist(),
    }
    found = looks_at(values, looks=2, seeds_per_look=5, alpha=0.05)
    assert {("A", "B"), ("A", "C")} == {pair for look in found for pair in look.rejected}
    assert found[1].differences.keys() == {("B", "C")}
    a, b = (np.mean(values[name][:5]) for name in "AB")
    assert found[0].differences["A", "B"] == pytest.approx(a - b)


@pytest.mark.slow
def test_equal_groups_are_rarely_called_different_by_adastop() -> None:
    rng = np.random.default_rng(5)
    false = sum(any(looks(*rng.lognormal(0, 0.8, (2, 15)).tolist(), 3, 5)) for _ in range(300))
    assert false <= 0.05 * 300 + 2 * math.sqrt(300 * 0.05 * 0.95)
