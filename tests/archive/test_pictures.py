"""Tests of `backflip.archive.pictures`."""

import csv
import io
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from backflip.archive.metrics import MetricsWriter
from backflip.archive.pictures import (
    MOST_POINTS,
    RETURN,
    Curve,
    clip_strip_png,
    curve,
    curve_csv,
    learning_curve_svg,
    ticks,
    write_curve,
)
from backflip.core.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"


def record(seed: int, env_steps: int, value: float, **more: Any) -> dict[str, Any]:
    return {"seed": seed, "env_steps": env_steps, RETURN: value, **more}


@pytest.fixture
def three_seeds() -> Curve:
    values = {0: [0.0, 2.0, 4.0], 1: [1.0, 3.0, 8.0], 2: [2.0, 4.0, 9.0]}
    records = [record(s, 100 * (i + 1), x) for s, row in values.items() for i, x in enumerate(row)]
    return curve(records)


def points(svg: str, style: str) -> list[list[tuple[float, float]]]:
    """The places of every polyline or polygon of a style, without the repeated last point."""
    root = ET.fromstring(svg)
    found = [e for e in root.iter() if e.get("class") == style and e.get("points")]
    pairs = [[p.split(",") for p in e.attrib["points"].split()] for e in found]
    return [[(float(x), float(y)) for x, y in line] for line in pairs]


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter(f"{SVG}text")]


def test_mean_and_interval_by_hand(three_seeds: Curve) -> None:
    np.testing.assert_allclose(three_seeds.mean, [1.0, 3.0, 7.0])
    # seeds 4, 8, 9: variance 7; t with 2 degrees of freedom 4.3027
    assert three_seeds.margin[2] == pytest.approx(4.3027 * math.sqrt(7 / 3), rel=1e-4)


def test_the_interval_is_scipys(three_seeds: Curve) -> None:
    last = three_seeds.values[:, 2]
    low, high = stats.t.interval(0.95, 2, last.mean(), stats.sem(last))
    assert high - low == pytest.approx(2 * three_seeds.margin[2], rel=1e-4)


def test_a_single_seed_has_no_interval() -> None:
    assert np.isnan(curve([record(0, 1, 2.0)]).margin).all()


def test_values_lie_on_lines_within_a_seed_and_nowhere_beyond_it() -> None:
    drawn = curve([record(0, 100, 0.0), record(0, 300, 4.0), record(1, 200, 1.0)])
    np.testing.assert_array_equal(drawn.env_steps, [100, 200, 300])
    np.testing.assert_array_equal(drawn.values, [[0, 2, 4], [math.nan, 1, math.nan]])
    np.testing.assert_array_equal(drawn.mean, [math.nan, 1.5, math.nan])


def test_records_without_a_value_are_left_out() -> None:
    without = [record(0, 200, math.nan), {"seed": 0, "env_steps": 300}, record(0, 400, math.inf)]
    assert curve([record(0, 100, 1.0), *without]).env_steps.tolist() == [100]
    with pytest.raises(UsageError, match=RETURN):
        curve(without)


def test_many_records_become_means_weighted_by_episodes() -> None:
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


def test_csv_leaves_blank_what_is_unknown() -> None:
    rows = list(csv.DictReader(io.StringIO(curve_csv(curve([record(7, 1_000_000, -2.5)])))))
    assert rows == [
        {"env_steps": "1000000", "mean": "-2.5", "low_95": "", "high_95": "", "seed_7": "-2.5"}
    ]


def test_svg_has_a_line_a_seed_the_mean_and_the_band(three_seeds: Curve) -> None:
    svg = learning_curve_svg(three_seeds, title="t", optimum=10.0)
    assert len(points(svg, "seed")) == 3
    (mean,) = points(svg, "mean")
    (band,) = points(svg, "band")
    (optimum,) = points(svg, "optimum")
    assert mean[2][1] < mean[1][1] < mean[0][1], "larger values are higher up"
    assert optimum[0][1] < mean[2][1], "the optimum is above"
    # On one straight scale: means 1, 3, 7 lie at a third of the way.
    share = (mean[0][1] - mean[1][1]) / (mean[0][1] - mean[2][1])
    assert share == pytest.approx(2 / 6, abs=0.01)
    seeds = points(svg, "seed")
    assert {place[1] for place in band} == {y for line in (seeds[0], seeds[2]) for _, y in line}


def test_svg_stays_inside_its_frame(three_seeds: Curve) -> None:
    svg = learning_curve_svg(three_seeds, title="t", optimum=-50.0)
    drawn = [p for style in ("seed", "mean", "band", "optimum") for p in points(svg, style)]
    for x, y in (place for line in drawn for place in line):
        assert 74 <= x <= 740
        assert 66 <= y <= 364


def test_svg_says_how_many_seeds_and_what_the_axes_are(three_seeds: Curve) -> None:
    said = texts(learning_curve_svg(three_seeds, title="t", optimum=10.0))
    assert "mean of 3 seeds" in said
    assert "from the worst seed to the best" in said
    assert "optimum, 10" in said
    assert "environment steps of each seed" in said
    assert "true return of an episode" in said


def test_svg_of_one_seed_has_no_band_and_says_so() -> None:
    svg = learning_curve_svg(curve([record(4, 1, 2.0)]), title="t")
    assert points(svg, "band") == []
    assert len(points(svg, "mean")[0]) == 2, "a single point is drawn as a dot"
    assert "seed 4, the only one: no spread" in texts(svg)


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


def test_seeds_that_never_overlap_are_drawn_without_a_mean() -> None:
    svg = learning_curve_svg(curve([record(0, 1, 2.0), record(1, 2, 3.0)]), title="t")
    assert len(points(svg, "seed")) == 2
    assert not re.search("nan|inf", svg.split("</style>")[1])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 10.0, [0, 2, 4, 6, 8, 10]),
        (-3.0, 3.0, [-3, -2, -1, 0, 1, 2, 3]),
        (0.0, 0.3, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]),
        (-1300.0, -100.0, [-1200, -1000, -800, -600, -400, -200]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, 6) == pytest.approx(expected)


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


def opened(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png))


def moving_dot(length: int = 20) -> np.ndarray:
    clip = np.zeros((length, 84, 84), np.uint8)
    for step in range(length):
        clip[step, 40:44, step * 4 : step * 4 + 4] = 255
    return clip


def panel(image: Image.Image, row: int, column: int) -> np.ndarray:
    """The pixels of a panel; 126 wide, 6 apart, 174 from row to row, under a caption of 24."""
    x, y = 6 + column * 132, 6 + row * 174 + 24
    return np.asarray(image.convert("L").crop((x, y, x + 126, y + 126)))


def test_strip_of_pixels_shows_the_track_then_frames_in_order() -> None:
    image = opened(clip_strip_png([np.zeros_like(moving_dot()), moving_dot()], ["before", "after"]))
    assert panel(image, 0, 0).max() < 20
    track, first, last = (panel(image, 1, column) for column in (0, 1, 8))
    # 80 of 84 columns are crossed.
    assert (track.max(0) > 100).mean() == pytest.approx(80 / 84, abs=0.03)
    assert np.argmax(first.max(0)) < 10
    assert np.argmax(last.max(0)) > 110


def test_the_track_shows_dark_things_on_light_ground_too() -> None:
    track = panel(opened(clip_strip_png([255 - moving_dot()], ["c"])), 0, 0)
    assert (track.min(0) < 150).mean() == pytest.approx(80 / 84, abs=0.03)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_strip_takes_channels(channels: int) -> None:
    clip = np.stack([moving_dot()] * channels, axis=-1)
    assert panel(opened(clip_strip_png([clip], ["c"])), 0, 0).max() > 100


def test_strip_says_in_its_description_what_it_shows() -> None:
    image = opened(clip_strip_png([moving_dot()] * 2, ["before: −1", "after: +20"]))
    assert image.info["Description"] == "before: −1; after: +20"


def test_strip_of_vectors_draws_each_number_on_one_scale() -> None:
    rising, still = np.linspace(0, 1, 25)[:, None], np.full((25, 1), 0.5)
    image = opened(
        clip_strip_png([np.hstack([rising, still]), np.hstack([still, still])], ["a", "b"])
    )
    up, flat = panel(image, 0, 0) < 150, panel(image, 1, 0) < 150
    heights = [np.argmax(up[:, x]) for x in (12, 63, 114)]
    assert heights[0] > heights[1] > heights[2]
    rows = np.flatnonzero(flat.any(1))
    assert 60 <= rows.min() <= rows.max() <= 66, "a half lies in the middle of 0..1"
    assert image.width >= 2 * 132


def test_strip_survives_values_that_are_not_finite() -> None:
    clip = np.array([[0.0], [math.nan], [1.0], [0.0]])
    drawn = panel(opened(clip_strip_png([clip], ["c"])), 0, 0) < 150
    # A straight line from 0 to 1 over the gap, then down again.
    heights = [np.flatnonzero(drawn[:, x]).mean() for x in (45, 81)]
    assert heights == pytest.approx([63, 10], abs=4)


@pytest.mark.parametrize(
    ("clips", "captions"),
    [
        ([], []),
        ([moving_dot()], []),
        ([moving_dot(), moving_dot(5)], ["a", "b"]),
        ([np.zeros(5)], ["a"]),
        ([np.zeros((5, 8, 8), np.float32)], ["a"]),
    ],
)
def test_strip_refuses_what_it_cannot_draw(clips: list[np.ndarray], captions: list[str]) -> None:
    with pytest.raises(UsageError):
        clip_strip_png(clips, captions)
