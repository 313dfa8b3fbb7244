"""Sentences about results: each is said when it is true, and not otherwise."""

import numpy as np
import pytest

from runshelf.statistics.conclusions import of_difference, of_mean, of_scores, of_sequence
from runshelf.statistics.differences import difference
from runshelf.statistics.mean import mean_estimate
from runshelf.statistics.scores import Scores
from runshelf.statistics.sequential import SequentialPlan, decide


def about_mean(*scores: float) -> str:
    return " ".join(of_mean("A", mean_estimate(np.array(scores))))


def compared(first: list[float], second: list[float], **options: float) -> str:
    found = difference(np.array(first), np.array(second))
    sizes = len(first), len(second)
    return " ".join(of_difference("A", "B", sizes, found, **options))  # type: ignore[arg-type]


def test_few_runs_are_said_to_be_few() -> None:
    assert about_mean() == "A has no run with a score."
    assert "one run: no interval" in about_mean(3.0)
    five = about_mean(1.0, 2.0, 3.0, 4.0, 5.0)
    assert "A failure that happens in 45 % of runs" in five  # 0.55^5 = 0.05
    assert "no width" not in five
    assert about_mean(*range(11)) == ""


def test_equal_runs_are_said_to_be_equal() -> None:
    assert "All 12 runs of A have the same score" in about_mean(*[500.0] * 12)


def test_three_against_three_can_show_nothing() -> None:
    said = compared([1, 2, 3], [101, 102, 103])
    assert (
        "With 3 against 3 runs no permutation test can show a difference at 0.05, because the "
        "smallest possible p is 0.1: at least 4 against 4 are needed." in said
    )
    assert "higher mean" not in said


def test_more_comparisons_need_more_runs() -> None:
    four = ([1.0, 2, 3, 4], [11.0, 12, 13, 14])
    assert "B has the higher mean than A, by 10" in compared(*four)
    assert "among 3 comparisons" in compared(*four, comparisons=3, adjusted_p=0.086)
    assert "at least 5 against 5" in compared(*four, comparisons=3, adjusted_p=0.086)
    assert "needed" not in compared([1, 2, 3], [7, 8, 9], alpha=1e-5)  # drawn p is 1e-4 at least


def test_a_difference_that_is_not_shown_is_not_equality() -> None:
    said = compared([1, 2, 3, 4, 5], [2, 3, 4, 5, 6])
    assert "No difference between A and B is shown (p = 0.4444 > 0.05)" in said
    assert "does not prove them equal: the interval of A minus B is −3.306 to 1.306" in said
    assert "A run of A is higher than a run of B in 32 % of pairs" in said


def test_the_adjusted_p_decides() -> None:
    five = ([1.0, 2, 3, 4, 5], [11.0, 12, 13, 14, 15])
    assert "p = 0.02 <= 0.05" in compared(*five, comparisons=3, adjusted_p=0.02)
    assert "is shown (p = 0.06 > 0.05)" in compared(*five, comparisons=3, adjusted_p=0.06)


def test_an_interval_that_includes_0_is_named() -> None:
    said = compared([1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 40])
    assert "B has the higher mean than A" in said
    assert "includes 0 all the same" in said
    assert "includes 0" not in compared([1, 2, 3, 4, 5], [11, 12, 13, 14, 15])


def test_one_run_against_many_has_no_interval() -> None:
    said = compared([5.0], list(range(30)))
    assert "No difference between A and B is shown (p = " in said
    assert "interval" not in said
    far = compared([999.0], list(range(30)))
    assert "A has the higher mean" in far
    assert "interval" not in far


def test_failed_runs_are_counted_aloud() -> None:
    said = compared([np.nan, 5, 6, 7], [np.nan, np.nan, 3, 4])
    assert "1 of 4 runs of A has no finite score: counted as 3." in said
    assert "2 of 4 runs of B have no finite score: counted as 3." in said


def test_shares_near_the_ends_are_not_rounded_to_them() -> None:
    rng = np.random.default_rng(0)
    said = compared(list(rng.normal(100, 1, 400)), list(rng.normal(0, 1, 400)))
    assert "100 % of pairs (interval more than 99 % to 100 %" in said


@pytest.mark.parametrize(
    ("runs", "expected"), [(1, "one run"), (5, "5 runs on an environment"), (10, "")]
)
def test_scores_with_few_runs(runs: int, expected: str) -> None:
    scores = Scores({"ant": np.arange(20.0), "pong": np.arange(float(runs))})
    said = " ".join(of_scores("A", scores))
    assert expected in said
    assert bool(said) == bool(expected)


def test_a_sequence_says_what_is_decided_and_needed() -> None:
    plan = SequentialPlan(looks=3, runs_per_look=5)
    near = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    state = decide(plan, {"a": near, "b": near[:4], "far": near + 100})
    assert of_sequence(plan, state) == ("b needs 1 more run for look 1.",)
    state = decide(plan, {"a": near, "b": near, "far": near + 100})
    assert of_sequence(plan, state) == (
        "a and far: a has the lower mean (look 1).",
        "b and far: b has the lower mean (look 1).",
        "a needs 5 more runs for look 2.",
        "b needs 5 more runs for look 2.",
    )


def test_a_sequence_that_found_nothing_proves_nothing() -> None:
    plan = SequentialPlan(looks=1, runs_per_look=5)
    said = of_sequence(plan, decide(plan, {"a": np.zeros(5), "b": np.zeros(5)}))
    assert said == ("a and b: no difference was found in 1 look, which does not prove them equal.",)


def test_plans_that_cannot_decide_are_named() -> None:
    late, never = SequentialPlan(5, 4), SequentialPlan(1, 3)
    state = decide(late, {"a": np.array([]), "b": np.array([])})
    assert "No difference can be found before look 2." in of_sequence(late, state)
    state = decide(never, {"a": np.array([]), "b": np.array([])})
    assert "cannot find any difference: 3 runs a look are too few" in of_sequence(never, state)[0]
