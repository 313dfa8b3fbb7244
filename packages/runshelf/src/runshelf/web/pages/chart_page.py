"""Template variables of pages with charts."""

from typing import Any

from runshelf.web.cache import Cache
from runshelf.web.drawing.charts import Mark
from runshelf.web.drawing.figures import figures, point_tables
from runshelf.web.drawing.metric_choice import choose
from runshelf.web.pages import run_page
from runshelf.web.parameters import SMOOTHINGS, ChartView, Chosen, chart_address, with_query
from runshelf.web.subjects import Subject


def charts(
    chosen: Chosen,
    subjects: list[Subject],
    view: ChartView,
    cache: Cache,
    marks: tuple[Mark, ...] = (),
) -> dict[str, Any]:
    """Return the variables of a page with a chart for each metric."""
    choice = choose(subjects, view, cache)
    drawn = figures(subjects, choice.shown, choice.axis, view, cache, marks)
    return {
        "choice": choice,
        "figures": drawn,
        "chart_addresses": {f.metric: chart_address(chosen, f.metric, view) for f in drawn},
        "view": view,
        "smoothings": SMOOTHINGS,
        "report": with_query("/report", [*chosen, *view.query(page=1)]),
    }


def single_chart(
    subjects: list[Subject], metric: str, view: ChartView, cache: Cache
) -> dict[str, Any]:
    """Return the variables of the page with one chart and its points."""
    choice = choose(subjects, view, cache)
    marks: tuple[Mark, ...] = ()
    if len(subjects) == 1 and subjects[0].kind == "run":
        gallery = run_page.pictures_of(subjects[0].parts[0].folder, choice.axis)
        marks = run_page.marks_of(gallery, f"/runs/{subjects[0].key}")
    (figure,) = figures(subjects, [metric], choice.axis, view, cache, marks)
    zoomed = figure.axis == choice.axis  # the ends of the zoom are places on the chosen axis
    table_view = view if zoomed else view._replace(start="", end="")
    return {
        "figure": figure,
        "choice": choice,
        "view": view,
        "smoothings": SMOOTHINGS,
        "point_tables": point_tables(subjects, metric, figure.axis, table_view),
    }
