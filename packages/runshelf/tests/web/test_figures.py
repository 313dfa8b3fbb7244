"""Charts with their tables: zoom, cache, search."""

import math
import re
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import begin, done, finish, log

from runshelf.index.run_index import open_index
from runshelf.store.metrics import MetricsWriter
from runshelf.web.cache import Cache
from runshelf.web.drawing.charts import Mark
from runshelf.web.drawing.figures import Figure, figures, point_tables
from runshelf.web.drawing.metric_choice import choose
from runshelf.web.pages.chart_page import single_chart
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


def scripted(home: Path, name: str, records: list[dict[str, object]]) -> Subject:
    """A run without seeds, made of these records."""
    writer = begin(home, seed=None, name=name)
    with MetricsWriter(writer.folder, "log-1") as file:
        for record in records:
            file.write(record)
    folder = finish(writer)
    return Subject("run", folder.name, name, name, (Part(folder, name),))


def test_a_metric_without_the_axis_is_drawn_over_another_and_says_so(tmp_path: Path) -> None:
    timed = scripted(tmp_path, "timed", [{"time": 10.0 + n, "loss": 1.0} for n in range(3)])
    stepped = scripted(tmp_path, "stepped", [{"env_steps": n, "loss": 2.0} for n in range(4)])
    zoomed = ChartView(start="100", end="200")
    (alone,) = figures([timed], ["loss"], "env_steps", zoomed, Cache())
    assert (alone.axis, alone.curves[0].seeds) == ("seconds", 1)
    assert alone.notes[0] == "drawn over wall-clock: the run logged it without env steps"
    (both,) = figures([timed, stepped], ["loss"], "env_steps", ChartView(), Cache())
    assert both.axis == "step", "the second run has no time"
    assert [curve.seeds for curve in both.curves] == [1, 1]
    assert both.notes[0] == "drawn over steps as logged: some runs logged it without env steps"
    (whole,) = figures([stepped], ["loss"], "env_steps", ChartView(), Cache())
    assert (whole.axis, whole.notes) == ("env_steps", [])
    chart = single_chart([timed, stepped], "loss", zoomed, Cache())
    assert chart["choice"].axis == "env_steps"
    assert [row[0] for row in chart["point_tables"][0][1]] == [0.0, 1.0, 2.0]


def test_a_curve_that_ends_with_nan_has_its_last_finite_value_and_a_note(tmp_path: Path) -> None:
    one = scripted(tmp_path, "one", [{"step": n, "loss": v} for n, v in ((0, 3.0), (1, math.nan))])
    (figure,) = figures([one], ["loss"], "step", ChartView(), Cache())
    assert figure.curves[0].centre == 3.0
    assert figure.notes == [
        "1 value is NaN or infinite, the first marked red on the x-axis",
        "ends with NaN or infinity: one; the table has the last finite value",
    ]
    assert 'class="invalid" d="M1000 ' in figure.svg, "the mark is at the end of the axis"


def test_updates_without_episodes_are_no_invalid_values(tmp_path: Path) -> None:
    records = [
        {"env_steps": n, "episodes": n % 2, "episode_return_mean": 5.0 if n % 2 else math.nan}
        for n in range(9)
    ]
    one = scripted(tmp_path, "one", [*records])
    (figure,) = figures([one], ["episode_return_mean"], "env_steps", ChartView(), Cache())
    assert (figure.curves[0].centre, figure.notes) == (5.0, [])
    assert "invalid" not in figure.svg


def test_labels_that_are_too_long_are_cut_where_they_are_alike(tmp_path: Path) -> None:
    names = [f"a long name that all runs of this sweep share, rate {rate}" for rate in (1, 2)]
    subjects = [scripted(tmp_path, name, [{"step": 1, "loss": 1.0}]) for name in names]
    (figure,) = figures(subjects, ["loss"], "step", ChartView(), Cache())
    assert [curve.label for curve in figure.curves] == (
        [f"… runs of this sweep share, rate {rate}" for rate in (1, 2)]
    )
    assert [curve.title for curve in figure.curves] == names


def test_metrics_of_all_subjects_come_first(tmp_path: Path) -> None:
    one = scripted(tmp_path, "one", [{"step": 1, "episode_return": 1.0, "zeta": 1.0}])
    other = scripted(tmp_path, "other", [{"step": 1, "zeta": 1.0}])
    assert choose([one, other], ChartView(), Cache()).metrics == ["zeta", "episode_return"]
    assert choose([one], ChartView(), Cache()).metrics == ["episode_return", "zeta"]


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


def test_a_seed_whose_last_rollouts_ended_no_episode_does_not_end_early(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        writer = begin(tmp_path, seed=seed, group="g")
        with MetricsWriter(writer.folder, "train") as file:
            for n in range(100):
                ended = seed < 2 or n < 60
                file.write(
                    {
                        "seed": seed,
                        "env_steps": 256 * n,
                        "episodes": int(ended),
                        "episode_return_mean": 1.0 if ended else math.nan,
                    }
                )
        finish(writer)
    metrics = ["episode_return_mean"]
    (figure,) = figures([group(tmp_path, "g")], metrics, "env_steps", ChartView(), Cache())
    (row,) = figure.curves
    assert (row.seeds, row.of, row.ends) == (3, 3, "")
    assert not paths(figure, "fewer")
