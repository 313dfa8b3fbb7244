"""A curve as one line of text."""

import numpy as np

from runshelf.charts.sparkline import sparkline


def test_bars_are_as_high_as_the_values_on_the_scale() -> None:
    assert sparkline(np.array([0.0, 1.0, 2.0, 3.0]), 0.0, 3.0, 4) == "▁▃▆█"


def test_a_bar_is_the_mean_of_the_values_that_share_it() -> None:
    assert sparkline(np.array([0.0, 0.0, 3.0, 3.0]), 0.0, 3.0, 2) == "▁█"


def test_equal_values_have_bars_of_half_the_height() -> None:
    assert sparkline(np.array([2.0, 2.0]), 2.0, 2.0, 9) == "▅▅"
