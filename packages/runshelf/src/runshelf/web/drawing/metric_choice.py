"""Which metrics and axes of some subjects can be drawn, and which a page shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.store import series
from runshelf.store.metrics import stamp
from runshelf.web import run_files
from runshelf.web.cache import Cache
from runshelf.web.drawing.metric_order import rank
from runshelf.web.parameters import CHARTS, ChartView
from runshelf.web.subjects import Part, Subject

MOST_NAMES = 5_000


@final
class Choice(NamedTuple):
    """The metrics and axes of some subjects.

    Attributes:
        axes: the axes to choose from.
        axis: the axis to draw.
        metrics: all metrics that match the search, in order; those of all subjects come first.
        shown: the metrics on this page.
        pages: number of pages.
        more: whether more metrics match than can be listed.
    """

    axes: list[str]
    axis: str
    metrics: list[str]
    shown: list[str]
    pages: int
    more: bool


def choose(subjects: Sequence[Subject], view: ChartView, cache: Cache) -> Choice:
    """Return the metrics and axes that a view of some subjects shows."""
    names: dict[str, int] = {}  # with the number of subjects that have the metric
    axes: dict[str, None] = {}
    for subject in subjects:
        of_subject: dict[str, None] = {}
        for part in subject.parts:
            part_axes, part_names = _axes_and_names(part, cache)
            axes.update(dict.fromkeys(part_axes))
            of_subject.update(dict.fromkeys(part_names))
        for name in of_subject:
            names[name] = names.get(name, 0) + 1
    offered = [axis for axis in ("env_steps", "seconds", "updates") if axis in axes]
    offered = offered or ["step", *(axis for axis in ("time", "seconds") if axis in axes)][:2]
    search = view.find.casefold()
    matching = [name for name in names if search in name.casefold()]
    ordered = sorted(
        matching[:MOST_NAMES], key=lambda name: (names[name] < len(subjects), rank(name))
    )
    pages = max(1, -(-len(ordered) // CHARTS))
    page = min(view.page, pages)
    axis = view.axis if view.axis in offered else offered[0]
    on_page = ordered[(page - 1) * CHARTS : page * CHARTS]
    return Choice(offered, axis, ordered, on_page, pages, len(matching) > MOST_NAMES)


def _axes_and_names(part: Part, cache: Cache) -> tuple[list[str], list[str]]:
    key = ("names", part.folder, stamp(part.folder))
    found = cache.get(key)
    if found is None:
        found = run_files.read_metrics(part.folder, _read_axes_and_names, ([], []))
        cache.put(key, found, size=sum(map(len, found[1])) + 64 * len(found[1]))
    return found


def _read_axes_and_names(folder: Path) -> tuple[list[str], list[str]]:
    return series.axes(folder), series.metric_names(folder)[: 4 * MOST_NAMES]
