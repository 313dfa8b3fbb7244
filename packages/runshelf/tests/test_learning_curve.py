"""Tests of `runshelf.learning_curve` and of the pictures of `runshelf.charts`."""

import csv
import io
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runshelf.charts.picture import picture
from runshelf.charts.plot import Line
from runshelf.charts.scales import Scale
from runshelf.errors import UsageError
from runshelf.learning_curve import (
    MOST_POINTS,
    RETURN,
    Curve,
    curve,
    curve_csv,
    learning_curve_svg,
    write_curve,
)
from runshelf.store.metrics import MetricsWriter

SVG = "{http://www.w3.org/2000/svg}"


def record(seed: int, env_steps: int, value: float, **more: Any) -> dict[str, Any]:
    return {"seed": seed, "env_steps": env_steps, RETURN: value, **more}


@pytest.fixture
def three_seeds() -> Curve:
    values = {0: [0.0, 2.0, 4.0], 1: [1.0, 3.0, 8.0], 2: [2.0, 4.0, 9.0]}
    records = [record(s, 100 * (i + 1), x) for s, row in values.items() for i, x in enumerate(row)]
    return curve(records)


BOX = (662, 298)  # the pixels of the plot


def points(svg: str, style: str) -> list[list[tuple[int, int]]]:
    """Return the points of each segment of all paths with a style, relative to the top left."""
    root = ET.fromstring(svg)
    plot = next(e for e in root.iter(f"{SVG}svg") if e.get("class") == "curves")
    return [
        stretch
        for path in plot.iter(f"{SVG}path")
        if path.get("class") == style
        for stretch in stretches(path.attrib["d"])
    ]


def stretches(path: str) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = []
    for letter, *numbers in re.findall(r"([MlL])(-?\d+) (-?\d+)", path):
        x, y = map(int, numbers)
        if letter == "M":
            found.append([(x, y)])
        else:
            last = found[-1][-1] if letter == "l" else (0, 0)
            found[-1].append((last[0] + x, last[1] + y))
    return found


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter(f"{SVG}text")]


def test_mean_and_interval_by_hand(three_seeds: Curve) -> None:
    np.testing.assert_allclose(three_seeds.mean, [1.0, 3.0, 7.0])
    # seeds 4, 8, 9: variance 7; t with 2 degrees of freedom 4.3027
    assert three_seeds.margin[2] == pytest.approx(4.3027 * math.sqrt(7 / 3), rel=1e-4)


def test_a_single_seed_has_no_interval() -> None:
    assert np.isnan(curve([record(0, 1, 2.0)]).margin).all()


def test_values_are_interpolated_within_a_seed_only() -> None:
    drawn = curve([record(0, 100, 0.0), record(0, 300, 4.0), record(1, 200, 1.0)])
    np.testing.assert_array_equal(drawn.env_steps, [100, 200, 300])
    np.testing.assert_array_equal(drawn.values, [[0, 2, 4], [math.nan, 1, math.nan]])
    np.testing.assert_array_equal(drawn.mean, [math.nan, 1.5, math.nan])


def test_records_without_a_value_are_left_out() -> None:
    without = [record(0, 200, math.nan), {"seed": 0, "env_steps": 300}, record(0, 400, math.inf)]
    assert curve([record(0, 100, 1.0), *without]).env_steps.tolist() == [100]
    with pytest.raises(UsageError, match=RETURN):
        curve(without)


def test_many_records_are_averaged_weighted_by_episodes() -> None:
    count = 2 * MOST_POINTS
    rows = [record(0, i + 1, float(i % 2), episodes=3.0 if i % 2 else 1.0) for i in range(count)]
    drawn = curve(rows)
    assert len(drawn.env_steps) == MOST_POINTS
    np.testing.assert_allclose(drawn.values, 0.75)
    assert drawn.env_steps[-1] == count


def test_csv_holds_the_numbers(three_seeds: Curve) -> None:
    rows = list(csv.DictReader(io.StringIO(curve_csv(three_seeds))))
    assert [row["env_steps"] for row in rows] == ["100", "200", "300"]
    assert [float(row["mean"]) for row in rows] == [1.0, 3.0, 7.0]
    assert [float(row["seed_2"]) for row in rows] == [2.0, 4.0, 9.0]
    margin = (float(rows[2]["high_95"]) - float(rows[2]["low_95"])) / 2
    assert margin == pytest.approx(three_seeds.margin[2])


def test_csv_has_empty_cells_for_missing_values() -> None:
    rows = list(csv.DictReader(io.StringIO(curve_csv(curve([record(7, 1_000_000, -2.5)])))))
    assert rows == [
        {"env_steps": "1000000", "mean": "-2.5", "low_95": "", "high_95": "", "seed_7": "-2.5"}
    ]


def test_svg_has_a_line_a_seed_the_mean_and_the_band(three_seeds: Curve) -> None:
    svg = learning_curve_svg(three_seeds, title="t", optimum=10.0)
    seeds = points(svg, "seed")
    mean, optimum = points(svg, "centre")
    (band,) = points(svg, "band")
    assert len(seeds) == 3
    assert mean[2][1] < mean[1][1] < mean[0][1], "larger values are higher up"
    assert optimum[0][1] < mean[2][1], "the optimum is above"
    # On one straight scale: means 1, 3, 7 lie at a third of the way.
    share = (mean[0][1] - mean[1][1]) / (mean[0][1] - mean[2][1])
    assert share == pytest.approx(2 / 6, abs=0.01)
    assert {place[1] for place in band} == {y for line in (seeds[0], seeds[2]) for _, y in line}


def test_points_are_where_the_scales_say(three_seeds: Curve) -> None:
    """By hand: 0 to 9 with a margin of 5 %; the first of three points is at 1/3 of the width."""
    mean, *_ = points(learning_curve_svg(three_seeds, title="t"), "centre")
    for (x, y), at, value in zip(mean, (1 / 3, 2 / 3, 1.0), (1.0, 3.0, 7.0), strict=True):
        assert x == pytest.approx(at * BOX[0], abs=1)
        assert y == pytest.approx((1 - (value + 0.45) / 9.9) * BOX[1], abs=1)


def test_svg_stays_inside_its_frame(three_seeds: Curve) -> None:
    svg = learning_curve_svg(three_seeds, title="t", optimum=-50.0)
    for x, y in (
        p for style in ("seed", "centre", "band") for line in points(svg, style) for p in line
    ):
        assert 0 <= x <= BOX[0]
        assert 0 <= y <= BOX[1]


def test_svg_names_seeds_and_axes(three_seeds: Curve) -> None:
    said = texts(learning_curve_svg(three_seeds, title="t", optimum=10.0))
    assert "mean of 3 seeds" in said
    assert "worst to best seed" in said
    assert "optimum 10" in said
    assert "environment steps of each seed" in said
    assert "true return of an episode" in said


def test_svg_of_one_seed_has_no_band() -> None:
    svg = learning_curve_svg(curve([record(4, 1, 2.0)]), title="t")
    assert points(svg, "band") == []
    assert 'class="centre" d="M662 149h0"' in svg, "a single point is drawn as a dot"
    assert "seed 4 (a single seed)" in texts(svg)


def test_svg_has_a_text_alternative_and_a_dark_theme(three_seeds: Curve) -> None:
    svg = learning_curve_svg(three_seeds, title="dot & <goal>", optimum=10.0)
    root = ET.fromstring(svg)
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert title is not None
    assert title.text == "dot & <goal>"
    assert desc is not None
    assert desc.text is not None
    for fact in (
        "3 seeds",
        "from 1 to a mean of 7",
        "after 300 env",
        "worst seed 4, best 9",
        "The optimum is 10",
    ):
        assert fact in desc.text
    assert "prefers-color-scheme: dark" in svg


@pytest.mark.parametrize("values", [[5.0, 5.0], [0.0, 0.0], [-1e-9, 1e-9], [-1e6, 1e6]])
def test_svg_of_flat_and_of_huge_values_is_finite(values: list[float]) -> None:
    drawn = curve([record(0, i, x) for i, x in enumerate(values)])
    svg = learning_curve_svg(drawn, title="t")
    assert not re.search("nan|inf", svg.split("</style>")[1])


def test_a_seed_that_ends_early_is_named_with_its_end() -> None:
    found = curve(
        [record(s, n, 1.0 + s) for s, end in ((4, 50), (5, 20)) for n in range(10, end, 10)]
    )
    svg = learning_curve_svg(found, title="t")
    assert "mean of 2 seeds, up to 10" in texts(svg)
    assert "The mean ends at 10 environment steps, with the last value of seed 5." in svg
    together = curve([record(s, n, 1.0) for s, end in ((4, 1000), (5, 990)) for n in (10, end)])
    assert "mean of 2 seeds" in texts(learning_curve_svg(together, title="t"))


def test_disjoint_seeds_are_drawn_without_a_mean() -> None:
    svg = learning_curve_svg(curve([record(0, 1, 2.0), record(1, 2, 3.0)]), title="t")
    assert len(points(svg, "seed")) == 2
    assert not re.search("nan|inf", svg.split("</style>")[1])


def test_a_chart_with_logarithmic_axes() -> None:
    line = Line("a", np.array([1.0, 10.0, 100.0]), np.array([0.1, 1.0, 10.0]), dots=True)
    scales = (Scale(1.0, 100.0, log=True), "x"), (Scale(0.1, 10.0, log=True), "seconds")
    svg = picture("t", [line], *scales, legend=[], description="d")
    assert points(svg, "centre") == [[(0, 298), (331, 149), (662, 0)]]
    assert points(svg, "dots") == [[(0, 298)], [(331, 149)], [(662, 0)]]
    assert {"1", "10", "100", "0.1"} <= set(texts(svg))


def test_write_curve_reads_a_runs_metrics(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path, "train") as writer:
        for update in (1, 2, 2):
            writer.write(record(0, 10 * update, float(update), updates=update))
    paths = write_curve(tmp_path, title="t")
    assert [path.name for path in paths] == ["curve.svg", "curve.csv"]
    assert paths[1].read_text().splitlines()[1:] == ["10,1,,,1", "20,2,,,2"]
    ET.fromstring(paths[0].read_text())


def test_write_curve_of_a_run_without_an_ended_episode_draws_nothing(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path, "train") as writer:
        writer.write(record(0, 10, math.nan, updates=1))
    assert write_curve(tmp_path, title="t") == []
    assert not (tmp_path / "curve.svg").exists()
