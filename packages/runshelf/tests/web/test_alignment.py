"""Alignment of seeds: grid, buckets, gaps, invalid values. Colours."""

import numpy as np
import pytest

from runshelf.web.drawing.alignment import Member, align, finals, smoothed
from runshelf.web.drawing.colours import COLOURS, LineStyle, colour_of, line_styles

NAN = float("nan")


def member(x: list[float], y: list[float], label: str = "seed 0") -> Member:
    return Member(label, np.array(x, float), np.array(y, float))


def test_few_x_values_are_the_grid() -> None:
    found = align([member([1, 2, 3], [10, 20, 30]), member([1, 3], [1, 3])])
    assert found.x.tolist() == [1, 2, 3]
    assert found.values.tolist() == [[10, 20, 30], [1, 2, 3]]
    assert not found.bucketed


def test_seeds_are_not_extrapolated() -> None:
    found = align([member([1, 2, 3, 4], [1, 2, 3, 4]), member([2, 3], [7, 7])])
    assert found.values[1].tolist()[1:3] == [7, 7]
    assert np.isnan(found.values[1][[0, 3]]).all()


def test_many_x_values_become_equal_buckets_with_means() -> None:
    """0 to 999 in ten buckets: the mean of the first hundred is 49.5."""
    found = align([member(list(range(1000)), list(range(1000)))], buckets=10)
    assert found.bucketed
    np.testing.assert_allclose(found.values[0], np.arange(49.5, 1000, 100))
    np.testing.assert_allclose(np.diff(found.x), 99.9)


def test_every_value_counts_in_exactly_one_bucket() -> None:
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.uniform(0, 7, 5000)), rng.normal(size=5000)
    found = align([Member("", x, y)], buckets=50)
    counts, _ = np.histogram(x, bins=50, range=(x[0], x[-1]))
    assert (found.values[0] * counts).sum() == pytest.approx(y.sum())


def test_seeds_with_different_x_values_share_buckets() -> None:
    one = member(list(np.linspace(0, 100, 400)), [1.0] * 400)
    other = member(list(np.linspace(0, 49.9, 300)), [3.0] * 300)
    found = align([one, other], buckets=20)
    assert np.nanmean(found.values[0]) == 1.0
    assert np.isfinite(found.values[1]).sum() == 10


def test_repeated_x_values_are_averaged() -> None:
    found = align([member([1, 1, 2], [2, 4, 9])])
    assert found.values.tolist() == [[3, 9]]


def test_nan_and_infinite_values_are_left_out_and_counted() -> None:
    found = align([member([1, 2, 3], [1, NAN, np.inf]), member([1], [NAN])])
    assert found.left_out == 3
    assert found.left_out_at == [2, 3, 1]
    assert found.labels == ["seed 0", "seed 0"]


def test_a_log_scale_leaves_out_values_that_are_not_positive() -> None:
    found = align([member([1, 2, 3], [1, 0, -2])], positive=True)
    assert (found.left_out, found.values.tolist()) == (2, [[1.0]])


def test_without_values_the_grid_is_empty() -> None:
    found = align([member([], []), member([1], [NAN])])
    assert found.values.shape == (2, 0)
    assert np.isnan(finals(found)).all()


def test_finals_are_the_last_values_of_each_seed() -> None:
    found = align([member([1, 2], [5, 6]), member([1, 2, 3], [7, 8, NAN])])
    assert finals(found).tolist() == [6, 8]
    many = align([member(list(range(1000)), [*[0.0] * 999, 7.0])])
    assert (many.bucketed, finals(many).tolist()) == (True, [7.0])


def test_smoothing_is_a_centred_moving_mean_and_keeps_gaps() -> None:
    values = np.array([[NAN, 0.0, 3.0, 6.0, 0.0, NAN]])
    found = smoothed(values, 2 / 6)
    np.testing.assert_allclose(found[0, 1:5], [1.5, 3.0, 3.0, 3.0])
    assert np.isnan(found[0, [0, 5]]).all()
    assert smoothed(values, 0.0) is values


# --- colours ---------------------------------------------------------------------------------


def test_the_colour_of_a_group_depends_only_on_its_name() -> None:
    assert colour_of("ppo CartPole-v1 1a2b") == 3
    assert {colour_of(str(n)) for n in range(200)} == set(range(COLOURS))


def test_lines_with_the_same_colour_have_different_dashes() -> None:
    same = [str(n) for n in range(200) if colour_of(str(n)) == 3][:3]
    assert line_styles(same) == [LineStyle(3, 0), LineStyle(3, 1), LineStyle(3, 2)]
