"""What the address bar says of a page: everything that was chosen, and nothing else."""

from collections.abc import Sequence
from typing import NamedTuple, final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from backflip.archive.series import AXES
from backflip.archive.statistics import Centre

LONGEST = 2_000
SMOOTHINGS = {"0": 0.0, "2": 0.02, "5": 0.05, "10": 0.1, "20": 0.2}
ROWS = 50
MOST_COLUMNS = 12
CHARTS = 12


@final
class ChartView(NamedTuple):
    """How curves are drawn.

    Attributes:
        axis: along which axis; empty for the first of those that there are.
        centre: mean or interquartile mean.
        smoothing: per cent of the axis over which moving means are taken, as text; `0` for none.
        log: whether the y-axis is logarithmic.
        find: what the names of the metrics shown contain.
        page: which dozen of them, from 1.
    """

    axis: str = ""
    centre: Centre = "mean"
    smoothing: str = "0"
    log: bool = False
    find: str = ""
    page: int = 1

    @property
    def share(self) -> float:
        """The share of the axis over which moving means are taken."""
        return SMOOTHINGS[self.smoothing]

    def query(self, **changes: object) -> list[tuple[str, str]]:
        """Return the part of an address that says this view, changed; defaults are left out."""
        view = self._replace(**changes)
        said = {
            "x": view.axis,
            "centre": "" if view.centre == "mean" else view.centre,
            "smooth": "" if view.smoothing == "0" else view.smoothing,
            "log": "1" if view.log else "",
            "find": view.find,
            "charts": "" if view.page == 1 else str(view.page),
        }
        return [(name, value) for name, value in said.items() if value]


@final
class TableView(NamedTuple):
    """Which rows of the table are shown, and how.

    Attributes:
        show: `groups` or `runs`.
        filter: in the grammar of the index.
        sort: a key, with `-` before it for descending order.
        columns: configuration keys and metrics shown beside the usual ones.
        page: which page, from 1.
    """

    show: str = "groups"
    filter: str = ""
    sort: str = "-created"
    columns: tuple[str, ...] = ()
    page: int = 1

    def query(self, **changes: object) -> list[tuple[str, str]]:
        """Return the part of an address that says this view, changed; defaults are left out."""
        view = self._replace(**changes)
        said = [
            ("show", "" if view.show == "groups" else view.show),
            ("filter", view.filter),
            ("sort", "" if view.sort == "-created" else view.sort),
            *(("column", column) for column in view.columns),
            ("page", "" if view.page == 1 else str(view.page)),
        ]
        return [(name, value) for name, value in said if value]

    def address(self, **changes: object) -> str:
        """Return the address of this view, with changes."""
        return addressed("/", self.query(**changes))


def chart_view(query: QueryParams) -> ChartView:
    """Return what an address says of curves; what makes no sense is as if it were not there."""
    axis, smoothing = query.get("x", ""), query.get("smooth", "0")
    return ChartView(
        axis=axis if axis in AXES else "",
        centre="iqm" if query.get("centre") == "iqm" else "mean",
        smoothing=smoothing if smoothing in SMOOTHINGS else "0",
        log=query.get("log") == "1",
        find=query.get("find", "")[:LONGEST],
        page=whole(query.get("charts"), 1),
    )


def table_view(query: QueryParams) -> TableView:
    """Return what an address says of the table; what makes no sense is as if it were not there."""
    columns = dict.fromkeys(c.strip()[:LONGEST] for c in query.getlist("column") if c.strip())
    return TableView(
        show="runs" if query.get("show") == "runs" else "groups",
        filter=query.get("filter", "").strip(),
        sort=query.get("sort", "").strip() or "-created",
        columns=tuple(columns)[:MOST_COLUMNS],
        page=whole(query.get("page"), 1),
    )


def whole(text: str | None, least: int) -> int:
    """Return a whole number of at most nine digits, or `least`."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 10):
        return least
    return max(least, int(text))


def position(text: str | None) -> int | None:
    """Return a position in a file; None if the text is none."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 16):
        return None
    return int(text)


def addressed(path: str, query: Sequence[tuple[str, str]]) -> str:
    """Return an address."""
    return f"{path}?{urlencode(list(query))}" if query else path


def subject_query(runs: Sequence[str], groups: Sequence[str]) -> list[tuple[str, str]]:
    """Return the part of an address that says which runs and groups are meant."""
    return [*(("run", ulid) for ulid in runs), *(("group", name) for name in groups)]


def chart_address(runs: Sequence[str], groups: Sequence[str], metric: str, view: ChartView) -> str:
    """Return the address of the page of one chart."""
    rest = view.query(find="", page=1)
    return addressed("/chart", [*subject_query(runs, groups), ("metric", metric), *rest])
