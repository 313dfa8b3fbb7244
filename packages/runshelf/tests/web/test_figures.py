"""Charts with their tables: zoom, cache, search."""

import re
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import begin, finish, log

from runshelf.web.cache import Cache
from runshelf.web.charts import Mark
from runshelf.web.figures import Figure, figures, point_tables
from runshelf.web.metric_choice import choose
from runshelf.web.parameters import ChartView
from runshelf.web.subjects import Part, Subject


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    """A run whose loss is 0, 0.1 ... 1 at env steps 100, 200 ... 1100."""
    writer = begin(tmp_path)
    log(writer, 11, every=100, loss=lambda x: x)
    folder = finish(writer)
    return Subject("run", folder.name, "a", "a", (Part(folder, "a"),))


def drawn(subject: Subject, view: ChartView, cache: Cache | None = None) -> Figure:
    marks = tuple(Mark(x, f"#{x:g}", f"{x:g}") for x in (100.0, 350.0, 1100.0))
    (figure,) = figures([subject], ["loss"], "env_steps", view, cache or Cache(), marks)
    return figure


def test_zoom_restricts_values_marks_and_points(subject: Subject) -> None:
    whole, part = drawn(subject, ChartView()), drawn(subject, ChartView(start="300", end="500"))
    assert whole.curves[0].centre == 1.0
    assert part.curves[0].centre == pytest.approx(0.4)
    assert re.findall(r'href="(#\d+)"', whole.svg) == ["#100", "#350", "#1100"]
    assert re.findall(r'href="(#\d+)"', part.svg) == ["#350"]
    ((_, rows),) = point_tables([subject], "loss", "env_steps", ChartView(start="300", end="500"))
    assert [row[0] for row in rows] == [300.0, 400.0, 500.0]


def test_a_chart_is_cached_until_its_files_or_view_change(
    subject: Subject,
) -> None:
    cache = Cache()
    first = drawn(subject, ChartView(), cache)
    assert drawn(subject, ChartView(find="los", page=2), cache) is first
    assert drawn(subject, ChartView(log=True), cache) is not first
    (file,) = subject.parts[0].folder.glob("metrics-*.jsonl")
    with file.open("a") as more:
        more.write('{"seed": 0, "env_steps": 1200, "loss": 7.0}\n')
    assert drawn(subject, ChartView(), cache).curves[0].centre == 7.0


def test_metrics_are_searched_by_substring(subject: Subject) -> None:
    choice = choose([subject], ChartView(find="LOS"), Cache())
    assert (choice.shown, choice.axis) == (["loss"], "env_steps")
