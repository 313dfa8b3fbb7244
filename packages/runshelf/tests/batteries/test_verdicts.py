"""Better, worse, or not to be told: by hand, against slow definitions, and on equal groups."""

import math
from dataclasses import replace

import numpy as np
import pytest

from runshelf.batteries.measuring import Measured, with_direction
from runshelf.batteries.rows import BatteryRow
from runshelf.batteries.verdicts import judged
from runshelf.statistics.permutation import permutation_test

ROW = BatteryRow("a", ("x", "{seed}"), (0, 1, 2, 3, 4), (1.0, 2.0, 3.0, 4.0, 5.0))


def verdict(row, *scores):
    (one,) = judged([row], {row.name: scores}, {})
    return one


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ((1.0, 2.0, 3.0, 4.0, 5.0), "same"),
        ((1.0002, 2.0, 3.0, 4.0, 5.0), "same"),  # the reference was written to three decimals
        ((11.0, 12.0, 13.0, 14.0, 15.0), "better"),
        ((-11.0, -12.0, -13.0, -14.0, -15.0), "worse"),
        ((1.5, 2.0, 3.0, 4.0, 5.5), "cannot tell"),
        ((math.nan,) * 5, "failed"),
    ],
)
def test_words(scores, word):
    assert verdict(ROW, *scores).word == word


def test_smaller_is_better_if_the_row_says_so():
    assert verdict(replace(ROW, minimise=True), 11.0, 12.0, 13.0, 14.0, 15.0).word == "worse"
    assert verdict(replace(ROW, minimise=True), -11.0, -12.0, -13.0, -14.0, -15.0).word == "better"


def test_smaller_is_better_for_a_loss_unless_the_row_says_otherwise():
    loss = Measured((9.0,), "", 1.0, "loss")
    assert with_direction(ROW, loss).minimise is True
    assert with_direction(ROW, loss._replace(metric="score")).minimise is False
    assert with_direction(replace(ROW, metric="score"), loss).minimise is False
    assert with_direction(replace(ROW, minimise=False), loss).minimise is False


def test_seeds_that_fail_count_as_the_worst_score():
    found = verdict(replace(ROW, scores=(9.0, 9.1, 9.2, 9.3, 9.4)), *(math.nan,) * 4, 1.0)
    assert (found.word, found.difference.failures) == ("worse", (4, 0))
    reference = replace(ROW, scores=(math.nan, 2.0, 3.0, 4.0, 5.0))
    assert verdict(reference, math.nan, 2.0, 3.0, 4.0, 5.0).word == "same"
    assert verdict(replace(ROW, scores=(math.nan,) * 5), *ROW.scores).word == "better"


def test_a_difference_within_the_tolerance_is_no_change():
    wide = replace(ROW, scores=(100.0, 100.1, 100.2, 100.3, 100.4), tolerance=2.0)
    assert verdict(wide, 99.0, 99.1, 99.2, 99.3, 99.4).word == "same"
    assert verdict(replace(wide, tolerance=0.5), 99.0, 99.1, 99.2, 99.3, 99.4).word == "worse"


def test_one_seed_is_never_enough_and_is_not_counted_as_a_test():
    single = replace(ROW, name="b", seeds=(0,), scores=(1.0,))
    found = judged([ROW, single], {"a": (11.0, 12.0, 13.0, 14.0, 15.0), "b": (99.0,)}, {})
    assert [(one.word, one.note) for one in found] == [
        ("better", ""),
        ("cannot tell", "one seed each"),
    ]
    assert found[0].p == pytest.approx(2 / math.comb(10, 5))


def test_rows_that_differ_are_corrected_for_how_many_they_are():
    """Two of four rows differ: the smaller p is doubled, the equal rows do not count."""
    rows = [replace(ROW, name=name) for name in "abcd"]
    new = {
        "a": (6.0, 7.0, 8.0, 9.0, 5.5), "b": (2.0, 3.0, 4.0, 5.0, 6.5),
        "c": ROW.scores, "d": ROW.scores,
    }  # fmt: skip
    p = {n: permutation_test(np.array(new[n]), np.array(ROW.scores)).p for n in "ab"}
    found = {one.row.name: one for one in judged(rows, new, {})}
    assert found["a"].p == pytest.approx(2 * p["a"])
    assert found["b"].p == pytest.approx(max(2 * p["a"], p["b"]))
    assert [found[n].word for n in "abcd"] == ["better", "cannot tell", "same", "same"]


def test_too_few_seeds_are_said():
    two = replace(ROW, seeds=(0, 1), scores=(1.0, 2.0))
    found = verdict(two, 100.0, 200.0)
    assert found.word == "cannot tell"
    assert "smallest p 0.33" in found.note


def test_rows_without_a_reference_or_with_a_failed_command():
    new, broken = replace(ROW, scores=()), replace(ROW, name="b")
    found = judged([new, broken], {"a": (1.0,) * 5}, {"b": "exit status 3"})
    assert [(one.word, one.holds) for one in found] == [("new", True), ("failed", False)]
    assert found[1].note == "exit status 3"


@pytest.mark.slow
def test_equal_batteries_are_called_worse_or_better_in_one_of_twenty_at_most():
    """400 batteries of 6 rows from one distribution; by chance, .05 is exceeded up to .075."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        rows = [replace(ROW, name=f"r{n}", scores=tuple(rng.lognormal(size=5))) for n in range(6)]
        new = {row.name: tuple(rng.lognormal(size=5)) for row in rows}
        wrong += any(one.word in ("better", "worse") for one in judged(rows, new, {}))
    assert wrong / 400 <= 0.075
