"""Query parameters of pages: how curves are drawn, which rows are shown."""

import math
from collections.abc import Sequence
from typing import NamedTuple, final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runshelf.errors import UsageError
from runshelf.statistics.intervals import Centre
from runshelf.store.series import AXES

LONGEST = 2_000
SMOOTHINGS = {"0": 0.0, "2": 0.02, "5": 0.05, "10": 0.1, "20": 0.2}
ROWS = 50
MOST_COLUMNS = 12
CHARTS = 12
MOST_SUBJECTS = 10
_LONGEST_QUERY = 32 * 1024
_MOST_FIELDS = 200

Chosen = tuple[tuple[str, str], ...]  # kind (`run` or `group`) and key of each subject


@final
class ChartView(NamedTuple):
    """How curves are drawn.

    Attributes:
        axis: the x-axis; empty for the first available one.
        start: start of the x-axis, as text; empty for the first point.
        end: end of the x-axis, as text; empty for the last point.
        centre: mean or interquartile mean.
        smoothing: window of the moving means in per cent of the axis, as text; `0` for none.
        log: whether the y-axis is logarithmic.
        find: substring of the names of the metrics shown.
        page: page of metrics, from 1.
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
        """The window of the moving means as a fraction of the axis."""
        return SMOOTHINGS[self.smoothing]

    @property
    def bounds(self) -> tuple[float, float]:
        """The start and end of the x-axis; infinite if not set."""
        return float(self.start or -math.inf), float(self.end or math.inf)

    def query(self, **changes: object) -> list[tuple[str, str]]:
        """Return the query fields of this view with changes; defaults are left out."""
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
        filter: in the filter syntax of the index.
        sort: a key; a leading `-` means descending order.
        columns: additional columns: settings and metrics.
        page: page of the table, from 1.
    """

    show: str = "groups"
    filter: str = ""
    sort: str = "-created"
    columns: tuple[str, ...] = ()
    page: int = 1

    def query(self, **changes: object) -> list[tuple[str, str]]:
        """Return the query fields of this view with changes; defaults are left out."""
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
        """Return the address of this view with changes."""
        return with_query("/", self.query(**changes))


def chart_view(query: QueryParams) -> ChartView:
    """Parse how curves are drawn; invalid values count as missing."""
    axis, smoothing = query.get("x", ""), query.get("smooth", "0")
    return ChartView(
        axis=axis if axis in AXES else "",
        start=_number(query.get("from", "")),
        end=_number(query.get("to", "")),
        centre="iqm" if query.get("centre") == "iqm" else "mean",
        smoothing=smoothing if smoothing in SMOOTHINGS else "0",
        log=query.get("log") == "1",
        find=query.get("find", "")[:LONGEST],
        page=_page(query.get("charts")),
    )


def table_view(query: QueryParams) -> TableView:
    """Parse which rows are shown; invalid values count as missing."""
    columns = dict.fromkeys(c.strip()[:LONGEST] for c in query.getlist("column") if c.strip())
    return TableView(
        show="runs" if query.get("show") == "runs" else "groups",
        filter=query.get("filter", "").strip(),
        sort=query.get("sort", "").strip() or "-created",
        columns=tuple(columns)[:MOST_COLUMNS],
        page=_page(query.get("page")),
    )


def check_size(request: Request) -> None:
    """Refuse addresses much longer than those of the pages.

    Raises:
        HTTPException: 414.
    """
    query: bytes = request.scope["query_string"]
    if len(query) > _LONGEST_QUERY or query.count(b"&") > _MOST_FIELDS:
        raise HTTPException(
            414, f"The address has more than {_MOST_FIELDS} fields, or is too long."
        )


def chosen_subjects(request: Request, least: int, purpose: str) -> Chosen:
    """Return the runs and groups in the query, in order and without duplicates.

    Raises:
        UsageError: there are too few or too many.
    """
    items = request.query_params.multi_items()
    found = tuple(dict.fromkeys(item for item in items if item[0] in ("run", "group")))
    if not least <= len(found) <= MOST_SUBJECTS:
        raise UsageError(
            f"{least} to {MOST_SUBJECTS} runs or groups can be {purpose}, the address names"
            f" {len(found)}; add run=ID or group=NAME to the address"
        )
    return found


def position(text: str | None, digits: int = 15) -> int | None:
    """Return a natural number of at most so many digits; None if the text is invalid."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) <= digits):
        return None
    return int(text)


def _page(text: str | None) -> int:
    return max(1, position(text, digits=9) or 1)


def with_query(path: str, query: Sequence[tuple[str, str]]) -> str:
    """Return a path with a query string."""
    return f"{path}?{urlencode(list(query))}" if query else path


def chart_address(chosen: Sequence[tuple[str, str]], metric: str, view: ChartView) -> str:
    """Return the address of the page with one chart.

    Args:
        chosen: kind (`run` or `group`) and key of each curve.
        metric: the metric's name.
        view: how curves are drawn.
    """
    rest = view.query(find="", page=1)
    return with_query("/chart", [*chosen, ("metric", metric), *rest])


def _number(text: str) -> str:
    """Return the text if it is a finite number; otherwise empty text."""
    try:
        return text if len(text) < 30 and math.isfinite(float(text)) else ""
    except ValueError:
        return ""
