"""What the address of a page says: how curves are drawn, which rows are shown."""

import math
from collections.abc import Sequence
from typing import NamedTuple, final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from runshelf.statistics import Centre
from runshelf.store.series import AXES

LONGEST = 2_000
SMOOTHINGS = {"0": 0.0, "2": 0.02, "5": 0.05, "10": 0.1, "20": 0.2}
ROWS = 50
MOST_COLUMNS = 12
CHARTS = 12


@final
class ChartView(NamedTuple):
    """How curves are drawn.

    Attributes:
        axis: the x-axis; empty for the first one there is.
        start: where the x-axis begins, as text; empty for the first point.
        end: where it ends; empty for the last point.
        centre: mean or interquartile mean.
        smoothing: per cent of the axis over which moving means are taken, as text; `0` for none.
        log: whether the y-axis is logarithmic.
        find: a part of the names of the metrics shown.
        page: which dozen of them, from 1.
    """

    axis: str = ""
    start: str = ""
    end: str = ""
    centre: Centre = "mean"
    smoothing: str = "0"
    log: bool = False
    find: str = ""
    page: int = 1

    @property
    def share(self) -> float:
        """The share of the axis over which moving means are taken."""
        return SMOOTHINGS[self.smoothing]

    @property
    def bounds(self) -> tuple[float, float]:
        """The part of the x-axis that is drawn."""
        return float(self.start or -math.inf), float(self.end or math.inf)

    def query(self, **changes: object) -> list[tuple[str, str]]:
        """Return the query of an address for this view, changed; defaults are left out."""
        view = self._replace(**changes)
        fields = {
            "x": view.axis,
            "from": view.start,
            "to": view.end,
            "centre": "" if view.centre == "mean" else view.centre,
            "smooth": "" if view.smoothing == "0" else view.smoothing,
            "log": "1" if view.log else "",
            "find": view.find,
            "charts": "" if view.page == 1 else str(view.page),
        }
        return [(name, value) for name, value in fields.items() if value]


@final
class TableView(NamedTuple):
    """Which rows of the table are shown, and how.

    Attributes:
        show: `groups` or `runs`.
        filter: in the grammar of the index.
        sort: a key, with `-` before it for descending order.
        columns: further columns, settings and metrics.
        page: which page, from 1.
    """

    show: str = "groups"
    filter: str = ""
    sort: str = "-created"
    columns: tuple[str, ...] = ()
    page: int = 1

    def query(self, **changes: object) -> list[tuple[str, str]]:
        """Return the query of an address for this view, changed; defaults are left out."""
        view = self._replace(**changes)
        fields = [
            ("show", "" if view.show == "groups" else view.show),
            ("filter", view.filter),
            ("sort", "" if view.sort == "-created" else view.sort),
            *(("column", column) for column in view.columns),
            ("page", "" if view.page == 1 else str(view.page)),
        ]
        return [(name, value) for name, value in fields if value]

    def address(self, **changes: object) -> str:
        """Return the address of this view, changed."""
        return with_query("/", self.query(**changes))


def chart_view(query: QueryParams) -> ChartView:
    """Return how curves are drawn; invalid values count as missing."""
    axis, smoothing = query.get("x", ""), query.get("smooth", "0")
    return ChartView(
        axis=axis if axis in AXES else "",
        start=_number(query.get("from", "")),
        end=_number(query.get("to", "")),
        centre="iqm" if query.get("centre") == "iqm" else "mean",
        smoothing=smoothing if smoothing in SMOOTHINGS else "0",
        log=query.get("log") == "1",
        find=query.get("find", "")[:LONGEST],
        page=whole(query.get("charts"), 1),
    )


def table_view(query: QueryParams) -> TableView:
    """Return which rows are shown; invalid values count as missing."""
    columns = dict.fromkeys(c.strip()[:LONGEST] for c in query.getlist("column") if c.strip())
    return TableView(
        show="runs" if query.get("show") == "runs" else "groups",
        filter=query.get("filter", "").strip(),
        sort=query.get("sort", "").strip() or "-created",
        columns=tuple(columns)[:MOST_COLUMNS],
        page=whole(query.get("page"), 1),
    )


def whole(text: str | None, least: int) -> int:
    """Return an integer of at most nine digits, or `least` if the text is none."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 10):
        return least
    return max(least, int(text))


def position(text: str | None) -> int | None:
    """Return a position in a file; None if the text is none."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 16):
        return None
    return int(text)


def with_query(path: str, query: Sequence[tuple[str, str]]) -> str:
    """Return an address with a query."""
    return f"{path}?{urlencode(list(query))}" if query else path


def chart_address(chosen: Sequence[tuple[str, str]], metric: str, view: ChartView) -> str:
    """Return the address of the page of one chart.

    Args:
        chosen: kind (`run` or `group`) and key of each curve.
        metric: the metric's name.
        view: how curves are drawn.
    """
    rest = view.query(find="", page=1)
    return with_query("/chart", [*chosen, ("metric", metric), *rest])


def _number(text: str) -> str:
    """Return text that is a finite number; empty for anything else."""
    try:
        return text if len(text) < 30 and math.isfinite(float(text)) else ""
    except ValueError:
        return ""
