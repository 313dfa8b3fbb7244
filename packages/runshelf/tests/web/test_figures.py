"""Charts with their tables: zoom, cache, search."""

import re
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import begin, done, finish, log

from runshelf.index.run_index import open_index
from runshelf.web.cache import Cache
from runshelf.web.charts import Mark
from runshelf.web.figures import Figure, figures, point_tables
from runshelf.web.metric_choice import choose
from runshelf.web.parameters import ChartView
from runshelf.web.subjects import Part, Subject, runs_of_group, subject_of


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


def group(home: Path, name: str) -> Subject:
    with open_index(home) as index:
        index.refresh()
        return subject_of("group", runs_of_group(index, name))


def paths(figure: Figure, kind: str) -> list[str]:
    return [path for path in re.findall(rf'class="{kind}" d="([^"]*)"', figure.svg) if path]


def test_a_seed_that_ends_early_is_marked(tmp_path: Path) -> None:
    for seed, points in ((0, 100), (1, 100), (2, 40)):
        curves = {"score": lambda x, seed=seed: float(seed)}
        done(tmp_path, seed, points, group="g", curves={**curves, "of": 100})
    subject = group(tmp_path, "g")
    (figure,) = figures([subject], ["score"], "env_steps", ChartView(), Cache())
    (row,) = figure.curves
    assert (row.seeds, row.of, row.ends) == (3, 3, "1 ends early")
    assert any(
        "ends at 10240: the thin line is the mean of fewer seeds, 2 at the end" in note
        for note in figure.notes
    )
    assert len(paths(figure, "centre")) == len(paths(figure, "fewer")) == 1
    (tick,) = re.findall(r"M(\d+)", paths(figure, "end")[0])
    assert int(tick) == round(1000 * 39 / 99), "the tick is where seed 2 ends"
    ((_, points),) = point_tables([subject], "score", "env_steps", ChartView())
    assert [(x, n) for x, n, *_ in points][38:41] == [(9984, 3), (10240, 3), (10496, 2)]


def test_seeds_that_end_together_have_no_mark(tmp_path: Path) -> None:
    for seed, points in ((0, 100), (1, 99)):
        done(tmp_path, seed, points, group="g", curves={"of": 100})
    (figure,) = figures(
        [group(tmp_path, "g")], ["episode_return_mean"], "env_steps", ChartView(), Cache()
    )
    assert figure.curves[0].ends == ""
    assert not any("ends" in note for note in figure.notes)


def test_a_repeated_seed_is_not_drawn(tmp_path: Path) -> None:
    for value in (1.0, 5.0):
        done(tmp_path, 0, 3, group="g", curves={"score": lambda x, value=value: value})
    done(tmp_path, 1, 3, group="g", curves={"score": lambda x: 7.0})
    subject = group(tmp_path, "g")
    (figure,) = figures([subject], ["score"], "env_steps", ChartView(), Cache())
    assert (figure.curves[0].of, figure.curves[0].centre) == (2, 6.0)
    assert "1 repeat of a seed not counted" in figure.notes


def test_overlapping_runs_draw_each_seed_once(tmp_path: Path) -> None:
    for seeds, value in (((0, 1), 1.0), ((1, 2), 4.0)):
        writer = begin(tmp_path, group="g", manifest={"seeds": list(seeds)})
        for seed in seeds:
            log(writer, 3, seed=seed, score=lambda x, value=value: value)
        finish(writer)
    subject = group(tmp_path, "g")
    (figure,) = figures([subject], ["score"], "env_steps", ChartView(), Cache())
    assert (figure.curves[0].of, figure.curves[0].centre) == (3, 3.0)
