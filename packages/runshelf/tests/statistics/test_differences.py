"""Two groups: Welch, permutations, P(X > Y), failures; several: Holm."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from runshelf.statistics.differences import difference, welch
from runshelf.statistics.failures import count_failures
from runshelf.statistics.multiplicity import holm
from runshelf.statistics.permutation import DRAWN, permutation_test, smallest_p
from runshelf.statistics.superiority import probability_of_superiority

X = np.array([1.0, 2.0, 3.0, 9.0, 4.0])
Y = np.array([3.0, 4.0, 5.0, 6.0])


def permutation_p_by_definition(first: np.ndarray, second: np.ndarray) -> float:
    both, runs = np.concatenate([first, second]), range(len(first) + len(second))
    apart = []
    for chosen in itertools.combinations(runs, len(first)):
        others = [run for run in runs if run not in chosen]
        apart.append(abs(both[list(chosen)].mean() - both[others].mean()))
    observed = abs(first.mean() - second.mean())
    return float(np.mean([one >= observed * (1 - 1e-9) for one in apart]))


@pytest.mark.parametrize("sizes", [(2, 2), (3, 7), (10, 10), (40, 5)])
def test_welch_agrees_with_scipy(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes)
    first, second = rng.normal(size=sizes[0]), rng.normal(2.0, 5.0, size=sizes[1])
    for confidence in (0.8, 0.95):
        expected = scipy.stats.ttest_ind(first, second, equal_var=False)
        ends = expected.confidence_interval(confidence)
        found = welch(first, second, confidence)
        assert found[:3] == pytest.approx((first.mean() - second.mean(), ends.low, ends.high))


def test_welch_without_spread_or_with_one_run() -> None:
    equal = welch(np.full(7, 0.1), np.full(3, 0.3))
    assert equal.low == equal.high == pytest.approx(-0.2)
    assert welch(np.full(7, 0.1), np.full(3, 0.1))[:3] == (0.0, 0.0, 0.0)
    assert welch(np.array([2.0, 2.0]), np.array([1.0, 3.0])).has_width
    assert not welch(np.array([2.0]), X).has_interval


def test_permutation_p_by_hand() -> None:
    """Of the 20 divisions of 3 and 3 runs only the observed one and its mirror differ as much."""
    found = permutation_test(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    assert found == (0.1, 0.1, True)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e-9])
def test_permutation_p_equals_the_definition(offset: float) -> None:
    for first, second in ((X, Y), (Y, X), (X[:2], Y), (np.round(X / 4), np.round(Y / 4))):
        expected = permutation_p_by_definition(first, second)
        assert permutation_test(first + offset, second + offset).p == pytest.approx(expected)


def test_works_or_fails_has_ties_that_count() -> None:
    """Five successes against two: hypergeometric chances of 5:2 and 2:5, no other."""
    first, second = np.ones(5), np.array([1.0, 1, 0, 0, 0])
    chance = scipy.stats.hypergeom(10, 7, 5).pmf([2, 5]).sum()
    assert permutation_test(first * 0.1, second * 0.1).p == pytest.approx(chance)


def test_drawn_divisions_agree_with_exact_ones_and_with_themselves() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=30), rng.normal(0.5, 1.0, size=30)
    found = permutation_test(first, second)
    assert not found.exact
    assert found == permutation_test(first, second)
    assert found.p == pytest.approx(scipy.stats.ttest_ind(first, second).pvalue, abs=0.01)
    far = permutation_test(first, second + 100.0)
    assert far.p == far.smallest_p == smallest_p(30, 30) == 1 / (1 + DRAWN)


@pytest.mark.parametrize(
    ("n", "m", "expected"), [(1, 1, 1.0), (3, 3, 0.1), (5, 5, 2 / 252), (2, 3, 0.1), (4, 1, 0.2)]
)
def test_the_smallest_p_can_be_reached(n: int, m: int, expected: float) -> None:
    assert smallest_p(n, m) == pytest.approx(expected)
    scores = 2.0 ** np.arange(n + m)
    reached = [
        permutation_test(scores[list(chosen)], np.delete(scores, list(chosen))).p
        for chosen in itertools.combinations(range(n + m), n)
    ]
    assert min(reached) == pytest.approx(expected)


def test_equal_runs_have_p_1() -> None:
    assert permutation_test(np.full(4, 0.1), np.full(4, 0.1)).p == 1.0
    assert permutation_test(np.full(40, 0.1), np.full(40, 0.1)).p == 1.0


def test_the_permutation_test_keeps_its_level() -> None:
    rng = np.random.default_rng(5)
    for draw in (rng.normal, rng.standard_exponential):
        groups = draw(size=(1000, 2, 5))
        false = np.mean([permutation_test(x, y).p <= 0.05 for x, y in groups])
        assert false <= 0.065  # 0.048 expected: 12 of 252 divisions


def test_superiority_by_hand_and_by_definition() -> None:
    pairs = [(x > y) + (x == y) / 2 for x in X for y in Y]
    assert probability_of_superiority(X, Y).value == pytest.approx(np.mean(pairs))
    assert probability_of_superiority(X, X).value == 0.5


def test_the_ends_of_superiority_solve_the_score_equation() -> None:
    found = probability_of_superiority(X, Y)
    for theta in found[1:3]:
        q = theta * (1 - theta)
        spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = q * (1 + (4.5 - 1) * spread) / 20
        assert (found.value - theta) ** 2 == pytest.approx(2.364624**2 * variance, rel=1e-5)


def test_superiority_is_symmetric_and_stays_between_0_and_1() -> None:
    forward, backward = probability_of_superiority(X, Y), probability_of_superiority(Y, X)
    assert forward.low == pytest.approx(1 - backward.high)
    always = probability_of_superiority(X + 100, Y)
    assert (always.value, always.high) == (1.0, 1.0)
    assert 0.5 < always.low < 1.0
    assert probability_of_superiority(X[:3] + 100, X[:3]).low < 0.5
    assert not probability_of_superiority(X, Y[:1]).has_interval


def test_a_failed_run_gets_the_worst_score_of_all_groups() -> None:
    groups = (np.array([5.0, np.nan, np.inf]), np.array([7.0, 3.0]))
    counted = count_failures(groups)
    assert counted.groups[0].tolist() == [5.0, 3.0, 3.0]
    assert (counted.failures, counted.failed, counted.value) == ((2, 0), 2, 3.0)
    assert count_failures(groups, higher_is_better=False).value == 7.0
    assert count_failures(groups, -1.0).groups[0].tolist() == [5.0, -1.0, -1.0]
    assert math.isnan(count_failures(groups[1:]).value)


def test_failures_without_a_score_are_refused() -> None:
    with pytest.raises(ValueError, match="no run has a finite score"):
        count_failures([np.array([np.nan]), np.array([np.nan])])
    with pytest.raises(ValueError, match="finite failure value"):
        count_failures([np.array([np.nan])], math.inf)


def test_a_difference_counts_failures_against_their_group() -> None:
    found = difference(np.array([10.0, 11.0, 12.0, np.nan]), np.array([5.0, 6.0, 7.0, 8.0]))
    filled = np.array([10.0, 11.0, 12.0, 5.0])
    assert found.failures == (1, 0)
    assert found.means == welch(filled, np.array([5.0, 6.0, 7.0, 8.0]))
    assert found.superiority.value == pytest.approx((12 + 0.5) / 16)
    assert found.test.p == permutation_p_by_definition(filled, np.array([5.0, 6.0, 7.0, 8.0]))


def test_empty_groups_and_scores_that_are_not_finite_are_refused() -> None:
    nothing = np.array([])
    for compared in (welch, permutation_test, probability_of_superiority, difference):
        with pytest.raises(ValueError, match="got 0 and 4"):
            compared(nothing, Y)
    with pytest.raises(ValueError, match="count failures first"):
        permutation_test(np.array([np.nan, 1.0]), Y)


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.5, 0.9])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_holm_rejects_what_the_sequential_rule_rejects() -> None:
    """Step down: stop at the first sorted p above α / (comparisons left)."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        p = rng.random(5) ** 3
        rejected = np.zeros(5, bool)
        for step, index in enumerate(np.argsort(p)):
            if p[index] > 0.05 / (5 - step):
                break
            rejected[index] = True
        assert ((holm(p) <= 0.05) == rejected).all()


@pytest.mark.parametrize("size", [1e-200, 1e160])
def test_the_interval_of_extreme_values_is_that_of_usual_ones(size: float) -> None:
    first, second = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 0.5])
    usual, found = welch(first, second), welch(first * size, second * size)
    np.testing.assert_allclose(np.array(found[:3]) / size, usual[:3], rtol=1e-9)


def test_values_too_far_apart_for_floats_have_no_finite_interval() -> None:
    found = welch(np.array([-1e308, 1e308]), np.array([1.0, 2.0]))
    assert not np.isfinite(found[1:3]).any()
