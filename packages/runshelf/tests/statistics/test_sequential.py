"""The sequential comparison: against plain tests, by brute force, and by simulation."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from runshelf.statistics.permutation import permutation_test
from runshelf.statistics.sequential import (
    SequentialPlan,
    SequentialState,
    _permuted_sums,
    decide,
)

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def groups(scores: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip("abcdef", scores, strict=False))


def test_one_look_is_the_permutation_test() -> None:
    rng = np.random.default_rng(0)
    plan = SequentialPlan(looks=1, runs_per_look=5)
    seen = set()
    for shift in np.linspace(0, 3, 60):
        x, y = rng.normal(size=5), rng.normal(shift, 1.0, size=5)
        decision = decide(plan, {"x": x, "y": y}).decisions["x", "y"]
        expected = "equal"
        if permutation_test(x, y).p <= 0.05:
            expected = "better" if x.mean() > y.mean() else "worse"
        assert decision == expected
        seen.add(decision)
    assert seen == {"equal", "worse"}


def brute_force_looks(x: np.ndarray, y: np.ndarray, n: int, alpha: float) -> list[bool]:
    """All C(2n, n)² permutations of two batches; whether each look finds a difference."""
    masks = [np.isin(range(2 * n), chosen) for chosen in itertools.combinations(range(2 * n), n)]
    both = [np.concatenate([x[at : at + n], y[at : at + n]]) for at in (0, n)]
    apart = [np.array([b[m].mean() - b[~m].mean() for m in masks]) for b in both]
    first = np.round(np.abs(apart[0]), 9)
    second = np.round(np.abs(apart[0][:, None] + apart[1]), 9)
    # The smallest boundary that enough permutations stay below, tried one value at a time.
    at_first = next(b for b in np.unique(first) if (first > b).mean() <= alpha / 2 + 1e-12)
    gone = np.broadcast_to((first > at_first)[:, None], second.shape)
    at_second = next(b for b in np.unique(second) if (gone | (second > b)).mean() <= alpha + 1e-12)
    return [first[0] > at_first, second[0, 0] > at_second]


@pytest.mark.medium
def test_two_looks_agree_with_brute_force() -> None:
    """Only permutations of the second look are drawn, so nearly every decision agrees."""
    rng = np.random.default_rng(1)
    plan = SequentialPlan(looks=2, runs_per_look=3, alpha=0.3)
    agreed, looks = [], []
    for _ in range(150):
        x, y = rng.normal(1.0, 1.0, 6), rng.normal(size=6)
        expected = brute_force_looks(x, y, 3, 0.3)
        found = decide(plan, {"x": x, "y": y})
        at = 1 if expected[0] else 2
        looks.append(at if any(expected) else 0)
        same = found.decided_at["x", "y"] == at
        agreed.append(same and (found.decisions["x", "y"] != "equal") == any(expected))
    assert np.mean(agreed) >= 0.97
    assert min(np.bincount(looks)) >= 20  # none, at the first look, at the second


def test_stepping_down_finds_more_than_the_largest_boundary() -> None:
    """With c far away, its pairs go first; a against b is then tested as if alone."""
    rng = np.random.default_rng(2)
    plan = SequentialPlan(looks=1, runs_per_look=6)
    alone, among = [], []
    for _ in range(80):
        scores = rng.normal([[0.0], [1.3], [1e12]], size=(3, 6))
        among.append(decide(plan, groups(scores)).decisions["a", "b"])
        alone.append(decide(plan, groups(scores[:2])).decisions["a", "b"])
    assert among == alone
    assert len(set(alone)) == 2


def test_a_noisy_group_does_not_hide_a_difference_between_quiet_ones() -> None:
    rng = np.random.default_rng(6)
    plan = SequentialPlan(looks=1, runs_per_look=6)
    scores = rng.normal([[0.0], [8.0], [0.0]], [[1.0], [1.0], [1000.0]], size=(3, 6))
    assert decide(plan, groups(scores)).decisions["a", "b"] == "worse"


def test_a_first_batch_without_spread_leaves_the_unit_to_a_later_one() -> None:
    plan = SequentialPlan(looks=2, runs_per_look=5)
    late = np.concatenate([np.zeros(5), np.arange(5.0)])
    state = decide(plan, {"a": late, "b": late + np.repeat([0.0, 100.0], 5)})
    assert state.decided_at == {("a", "b"): 2}
    assert state.decisions == {("a", "b"): "worse"}


def test_later_runs_do_not_change_the_statistics_of_earlier_looks() -> None:
    rng = np.random.default_rng(7)
    plan = SequentialPlan(looks=2, runs_per_look=5)
    x, y = rng.normal(size=(2, 2, 5))
    y[1, 0] = 1e4
    early, late = _permuted_sums(plan, 0, x[:1], y[:1]), _permuted_sums(plan, 0, x, y)
    np.testing.assert_allclose(late[0], early[0], atol=1e-4)
    deviation = np.concatenate([x[0], y[0]]).std()
    assert early[0, 0] == pytest.approx((x[0].mean() - y[0].mean()) / deviation)


def test_the_boundary_of_several_pairs_is_that_of_their_largest_statistic() -> None:
    """Three independent pairs at level α: each alone is tested at about 1 - (1 - α)^(1/3)."""
    rng = np.random.default_rng(3)
    plan = SequentialPlan(looks=1, runs_per_look=6, alpha=0.3)
    for _ in range(20):
        scores = rng.normal(size=(3, 6))
        found = set(decide(plan, groups(scores)).decisions.values()) != {"equal"}
        p = [permutation_test(x, y).p for x, y in itertools.combinations(scores, 2)]
        if min(p) < 0.05:
            assert found
        if min(p) > 0.2:
            assert not found


def growing(plan: SequentialPlan, scores: np.ndarray) -> list[SequentialState]:
    """The states as runs arrive one by one, also of groups that need none."""
    return [decide(plan, groups(scores[:, :many])) for many in range(1, plan.most_runs + 1)]


@pytest.mark.medium
def test_decisions_do_not_change_when_later_runs_are_added() -> None:
    rng = np.random.default_rng(4)
    plan = SequentialPlan(looks=4, runs_per_look=4)
    decided = 0
    for shift in (0.5, 1.0, 2.0, 4.0):
        scores = rng.normal([[0.0], [shift], [2 * shift]], size=(3, 16))
        states = growing(plan, scores)
        for before, after in itertools.pairwise(states):
            for pair, look in before.decided_at.items():
                assert after.decisions[pair] == before.decisions[pair]
                assert after.decided_at[pair] == look
                decided += 1
        assert states[-1].finished
        # Runs that come after the last look, or of groups that were stopped, are ignored.
        more = np.concatenate([scores, rng.normal(99.0, 1.0, size=(3, 5))], axis=1)
        assert decide(plan, groups(more)) == states[-1]
    assert decided > 20


def test_a_stopped_group_needs_no_runs_and_an_undecided_one_the_rest_of_its_batch() -> None:
    plan = SequentialPlan(looks=3, runs_per_look=5)
    near = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1.5])
    runs = {"a": near[:5], "b": near + 0.1, "far": near[:5] + 100}
    state = decide(plan, runs)
    assert state.looks_done == 1
    assert state.decisions == {
        ("a", "b"): "undecided",
        ("a", "far"): "worse",
        ("b", "far"): "worse",
    }
    assert state.decided_at == {("a", "far"): 1, ("b", "far"): 1}
    assert state.needed == {"a": 5, "b": 4}
    assert not state.finished


def test_nothing_is_tested_before_a_batch_is_complete() -> None:
    plan = SequentialPlan(looks=3, runs_per_look=5)
    state = decide(plan, {"a": np.zeros(5), "b": np.array([])})
    assert (state.looks_done, state.needed) == (0, {"b": 5})


def test_equal_runs_are_equal_at_the_last_look_only() -> None:
    plan = SequentialPlan(looks=2, runs_per_look=5)
    one, two = np.full((2, 5), 0.1), np.full((2, 10), 0.1)
    assert decide(plan, groups(one)).needed == {"a": 5, "b": 5}
    state = decide(plan, groups(two))
    assert (state.decisions, state.needed) == ({("a", "b"): "equal"}, {})


def test_swapping_the_groups_swaps_the_decision() -> None:
    plan = SequentialPlan(looks=2, runs_per_look=5)
    x, y = np.arange(10.0), np.arange(10.0) + 20
    assert decide(plan, {"x": x, "y": y}).decisions == {("x", "y"): "worse"}
    assert decide(plan, {"y": y, "x": x}).decisions == {("y", "x"): "better"}


@pytest.mark.parametrize(
    ("looks", "n", "expected"), [(5, 4, 2), (5, 5, 1), (1, 3, None), (2, 1, None), (1, 4, 1)]
)
def test_the_first_decisive_look_is_that_of_opposite_groups(
    looks: int, n: int, expected: int | None
) -> None:
    plan = SequentialPlan(looks, n)
    assert plan.first_decisive_look == expected
    x = np.arange(looks * n, dtype=float)
    state = decide(plan, {"x": x, "y": x + 1e6})
    found = {"worse": state.decided_at["x", "y"], "equal": None}
    assert found[state.decisions["x", "y"]] == expected


def test_with_too_few_permutations_for_alpha_nothing_is_found() -> None:
    """Of 10,000 drawn permutations one may exceed the boundary: 5.9 - 2 √5.9 = 1.04."""
    x = np.arange(12.0)
    for alpha, expected in ((5.7e-4, "equal"), (5.9e-4, "worse")):
        plan = SequentialPlan(1, 12, alpha)
        assert decide(plan, {"x": x, "y": x + 1e6}).decisions["x", "y"] == expected
        assert (plan.first_decisive_look is None) == (expected == "equal")


def test_a_margin_larger_than_what_is_left_decides_nothing() -> None:
    """At the first look 6 of 10,296 rows may exceed; at both, with the margin, 5."""
    scores = np.random.default_rng(8).normal(size=(2, 14))
    assert decide(SequentialPlan(2, 7, 1.2e-3), groups(scores)).decisions == {("a", "b"): "equal"}


def test_failed_runs_need_a_value_that_was_fixed_before() -> None:
    runs = {"a": np.array([np.nan, 10, 11, 12, 13]), "b": np.arange(5.0)}
    with pytest.raises(ValueError, match="a: 1 of 5 runs have no finite score"):
        decide(SequentialPlan(1, 5), runs)
    filled = runs | {"a": np.array([-1.0, 10, 11, 12, 13])}
    with_value = SequentialPlan(1, 5, failure_value=-1.0)
    assert decide(with_value, runs) == decide(SequentialPlan(1, 5), filled)


@pytest.mark.parametrize(
    "wrong",
    [{"looks": 0}, {"runs_per_look": 0}, {"alpha": 0.0}, {"alpha": 1.0}, {"failure_value": np.inf}],
)
def test_plans_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        SequentialPlan(**({"looks": 2, "runs_per_look": 5} | wrong))  # type: ignore[arg-type]


def test_one_group_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two groups, got 1"):
        decide(SequentialPlan(1, 5), {"a": np.zeros(5)})


RETURNS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: np.exp(0.8 * rng.normal(size=shape)),
    "works or fails": lambda rng, shape: (rng.random(shape) < 0.7).astype(float),
}


@pytest.mark.medium
@pytest.mark.parametrize(
    "kind",
    [pytest.param(x, marks=() if x == "normal" else pytest.mark.slow) for x in RETURNS],
)
@pytest.mark.parametrize("many", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_equal_groups_are_rarely_called_different(kind: str, many: int) -> None:
    """At most 5 % of comparisons; 7.5 % is three standard errors above. benchmarks/ has more."""
    rng = np.random.default_rng((many, len(kind)))
    plan = SequentialPlan(looks=3, runs_per_look=4)
    draws = RETURNS[kind](rng, (400, many, plan.most_runs))
    false = [set(decide(plan, groups(one)).decisions.values()) != {"equal"} for one in draws]
    assert np.mean(false) <= 0.075
