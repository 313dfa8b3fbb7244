"""Charts of pages: scales, curves, bands, links, data of the crosshair."""

import json
import re

import numpy as np
import pytest

from runshelf.charts.plot import Line, x_scale, y_scale
from runshelf.charts.scales import Scale
from runshelf.web.drawing.charts import Mark, chart

NAN = float("nan")


def line(y: list[float], x: list[float] | None = None, **more: object) -> Line:
    xs = np.array(x if x is not None else range(len(y)), float)
    return Line("a", xs, np.array(y, float), 2, **more)  # type: ignore[arg-type]


def test_ticks_are_round_numbers_inside_the_scale() -> None:
    np.testing.assert_allclose(Scale(0.0, 1.0).ticks(), [0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Scale(-3.0, 3.0).ticks(6) == [-3, -2, -1, 0, 1, 2, 3]
    assert Scale(3.0, 1234.0).ticks() == [250, 500, 750, 1000]
    assert Scale(0.02, 900.0, log=True).ticks() == [0.1, 1, 10, 100]


def test_a_curve_has_the_coordinates_of_its_values() -> None:
    svg = str(chart("m", [line([0.0, 1.0])], "env_steps"))
    path = re.search(r'class="centre" d="([^"]+)"', svg)
    assert path is not None
    # 5 % margin above and below: 1000 / 22 = 45.
    assert path[1] == "M0 955l1000 -910"


def test_a_gap_interrupts_the_curve_and_a_single_value_is_a_point() -> None:
    svg = str(chart("m", [line([1.0, NAN, 1.0, 1.0])], "updates"))
    path = re.search(r'class="centre" d="([^"]+)"', svg)
    assert path is not None
    assert path[1].count("M") == 2


def test_a_band_has_gaps_where_it_is_undefined() -> None:
    low, high = np.array([0.0, NAN, 0.0, 0.0]), np.array([1.0, NAN, 1.0, 1.0])
    svg = str(chart("m", [line([0.5, 0.5, 0.5, 0.6], low=low, high=high)], "updates"))
    band = re.search(r'class="band" d="([^"]+)"', svg)
    assert band is not None
    assert band[1].count("z") == 2


def test_a_very_wide_band_does_not_flatten_the_curve() -> None:
    low, high = np.array([-1e6, -1e6]), np.array([1e6, 1e6])
    svg = str(chart("m", [line([0.0, 1.0], low=low, high=high)], "updates"))
    path = re.search(r'class="centre" d="M0 (\d+)l1000 (-\d+)"', svg)
    assert path is not None
    assert int(path[2]) < -300


@pytest.mark.parametrize("y", [[], [NAN, NAN]])
def test_a_chart_without_values_has_a_message(y: list[float]) -> None:
    assert "no values along this axis" in str(chart("m", [line(y)], "env_steps"))


@pytest.mark.parametrize("y", [[5.0], [0.0, 0.0], [1e300, -1e300], [1e-300, 2e-300]])
def test_extreme_values_are_drawn(y: list[float]) -> None:
    svg = str(chart("m", [line(y)], "env_steps"))
    assert "nan" not in svg.lower().replace("null", "")
    assert 'class="centre" d="M' in svg


@pytest.mark.parametrize(
    ("y", "x"),
    [
        ([-1e308, 1e308], [0.0, 1.0]),
        ([5e-324, 1.5e-323], [0.0, 1.0]),
        ([1.0, 2.0], [2.0**60, 2.0**60]),
        ([1.0], [2.0**60]),
        ([1.0, 1.0 + 2e-16], [0.0, 1.0]),
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_axes_that_numbers_do_not_resolve_are_drawn(
    y: list[float], x: list[float], log: bool
) -> None:
    lines = [line(y, x)]
    for scale in (x_scale(lines), y_scale(lines, log=log)):
        assert scale is not None
        assert 1 <= len(scale.labels()) <= 12
        assert np.isfinite(scale.place(np.array([scale.low, scale.high]))).all()
    assert "<svg" in str(chart("m", lines, "env_steps"))


def test_titles_are_escaped() -> None:
    svg = str(chart('"><script>x</script>', [line([1.0, 2.0])], '"><b>'))
    assert "<script" not in svg
    assert "<b>" not in svg


def test_the_chart_contains_the_values_for_the_crosshair() -> None:
    svg = str(chart("m", [line([0.123456, NAN])], "env_steps"))
    data = re.search(r'data-curves="([^"]+)"', svg)
    assert data is not None
    (read,) = json.loads(data[1].replace("&#34;", '"'))["lines"]
    assert (read["x"], read["y"]) == ([0, 1], [0.1235, None])


def test_a_time_axis_has_ticks_at_whole_minutes_and_hours() -> None:
    assert Scale(0.0, 3600.0, clock=True).labels() == [
        (0.0, "0 s"),
        (0.25, "15 min"),
        (0.5, "30 min"),
        (0.75, "45 min"),
        (1.0, "1 h"),
    ]


def test_a_band_extends_the_scale_by_at_most_half_on_each_side() -> None:
    scale = y_scale([line([0.0, 1.0], low=np.full(2, -9.0), high=np.full(2, 1.25))])
    assert scale is not None
    assert scale.low == pytest.approx(-0.5 - 0.05 * 1.75)
    assert scale.high == pytest.approx(1.25 + 0.05 * 1.75)


def test_close_marks_share_a_link_with_an_escaped_label() -> None:
    marks = [Mark(x, "#a", f"<{x:g}>") for x in (5.0, 5.01, 5.02, 5.03, 9.0)]
    svg = str(chart("m", [line([1.0, 2.0], [0.0, 10.0])], "env_steps", marks=marks))
    labels = re.findall(r'class="mark" href="#a" aria-label="([^"]*)"', svg)
    assert labels == ["&lt;5&gt;; &lt;5.01&gt;; &lt;5.02&gt; and 1 more", "&lt;9&gt;"]
