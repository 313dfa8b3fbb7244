"""The search space: how it is written, its bounds, and the values that it gives."""

import numpy as np
import pytest
from scipy.stats import qmc

from runshelf.errors import UsageError
from runshelf.sweeps.searches import Grid, Listed, OptunaSearch, Random, Sobol, Tried, usual_search
from runshelf.sweeps.sobol import MOST_DIMENSIONS, sobol_points
from runshelf.sweeps.space import Choice, Range, from_fields, parse_space, to_fields


def test_parameters_as_people_write_them():
    space = parse_space(
        ["a=1e-4..1e-2:log", "b=16..256", "c=0.9..0.99:points=4", "d=relu,tanh", "e=1..2:real"]
    )
    assert space == {
        "a": Range(1e-4, 1e-2, log=True),
        "b": Range(16, 256, whole=True),
        "c": Range(0.9, 0.99, points=4),
        "d": Choice(("relu", "tanh")),
        "e": Range(1, 2),
    }
    assert {name: from_fields(name, to_fields(one)) for name, one in space.items()} == space


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "NAME=VALUES"),
        ("a=2..1", "wrong order"),
        ("a=1..1", "equal"),
        ("a=0..1:log", "must be above 0"),
        ("a=-1..1:log", "must be above 0"),
        ("a=x..1", "finite number"),
        ("a=nan..1", "finite number"),
        ("a=1..inf", "finite number"),
        ("a=1..2:points=1", "at least 2"),
        ("a=1..2:lin", ":log"),
        ("a=1,1", "different values"),
        ("a=1,,2", "empty value"),
        ("a=", "empty value"),
        ("seed=1..3", "--seeds"),
        ("a=1..99999999999999999999", "2\\^53"),
    ],
)
def test_bad_bounds_are_refused(text, said):
    with pytest.raises(UsageError, match=said):
        parse_space([text])


def test_values_by_hand():
    assert Range(1e-4, 1e-2, log=True).at(0.5) == 1e-3
    assert [Range(1, 3, whole=True).at(u) for u in (0.0, 0.34, 0.67, 0.999999)] == [1, 2, 3, 3]
    assert Range(1, 100, log=True, whole=True, points=3).values(3) == [1, 10, 100]
    assert Range(0.9, 0.99, points=4).values(4) == [0.9, 0.93, 0.96, 0.99]
    assert [Choice((1, 2)).at(u) for u in (0.0, 0.49, 0.5, 0.99)] == [1, 1, 2, 2]


def test_values_stay_within_their_bounds():
    rng = np.random.default_rng(0)
    for one in (Range(0.1234567, 0.7654321), Range(3, 7, log=True), Range(-5, 9, whole=True)):
        values = [one.at(float(u)) for u in rng.random(500)]
        assert min(values) >= one.low
        assert max(values) <= one.high


def test_sobol_is_that_of_scipy():
    ours = sobol_points(0, 256, MOST_DIMENSIONS, None)
    theirs = qmc.Sobol(MOST_DIMENSIONS, scramble=False, bits=30).random(256)
    assert np.array_equal(ours, theirs)


def test_a_shifted_sequence_fills_every_slice_once_and_starts_anywhere():
    points = sobol_points(0, 64, 5, seed=3)
    for column in points.T:
        assert sorted(np.floor(column * 64).astype(int)) == list(range(64))
    assert np.array_equal(points[17:20], sobol_points(17, 3, 5, seed=3))
    assert not np.array_equal(points, sobol_points(0, 64, 5, seed=4))


def test_too_many_dimensions_for_sobol():
    space = {f"x{n}": Range(0, 1) for n in range(MOST_DIMENSIONS + 1)}
    with pytest.raises(UsageError, match="--search random"):
        Sobol(space, 0).configurations(4)


def test_a_grid_has_every_combination_once():
    grid = Grid({"a": Choice((1, 2, 3)), "b": Range(0, 1, points=2)})
    found = [tuple(grid.choose(n, ()).values()) for n in range(grid.configurations(0))]
    assert found == [(1, 0.0), (1, 1.0), (2, 0.0), (2, 1.0), (3, 0.0), (3, 1.0)]
    with pytest.raises(UsageError, match="6 configurations"):
        grid.configurations(4)
    with pytest.raises(UsageError, match="points=5"):
        Grid({"a": Range(0, 1)}).configurations(0)
    many = Range(0, 1, points=2000)
    with pytest.raises(UsageError, match="4,000,000 configurations, the limit is 1,000,000"):
        Grid({"a": many, "b": many}).configurations(0)


def test_random_choices_depend_on_their_number_only():
    space = {"a": Range(0, 1), "b": Choice(("x", "y"))}
    assert Random(space, 1).choose(7, ()) == Random(space, 1).choose(7, ())
    assert Random(space, 1).choose(7, ()) != Random(space, 1).choose(8, ())
    with pytest.raises(UsageError, match="--samples"):
        Random(space, 1).configurations(0)


def test_a_list_and_the_usual_search():
    assert Listed([{"a": 1}, {"a": 2}]).choose(1, ()) == {"a": 2}
    assert usual_search({"a": Choice((1, 2)), "b": Range(0, 1, points=3)}) == "grid"
    assert usual_search({"a": Range(0, 1)}) == "sobol"


@pytest.mark.medium
def test_tpe_of_optuna_moves_to_where_scores_are_high():
    pytest.importorskip("optuna")
    space = {"x": Range(0.0, 1.0), "kind": Choice(("a", "b"))}
    search = OptunaSearch(space, "tpe", seed=0)
    tried = []
    for number in range(30):
        values = search.choose(number, tried)
        assert 0.0 <= values["x"] <= 1.0
        tried.append(Tried(values, -((values["x"] - 0.3) ** 2)))
    tried.append(Tried(tried[0].values, float("nan")))  # a failed configuration is no obstacle
    later = [search.choose(number, tried)["x"] for number in range(30, 40)]
    # Uniform places would be 0.123 away, on average of squares.
    assert float(np.mean([(x - 0.3) ** 2 for x in later])) < 0.06
