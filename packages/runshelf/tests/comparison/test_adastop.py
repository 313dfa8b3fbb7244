"""AdaStop by hand and by simulation, and how many seeds can show anything."""

import math

import numpy as np
import pytest

from runshelf.comparison.adastop import looks_at
from runshelf.comparison.conclusions import enough_seeds


def test_what_few_seeds_can_show() -> None:
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
