"""The table of runs and groups: rows, columns, filter errors, and CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

from runshelf.csv_cells import csv_cell
from runshelf.errors import UserFacingError
from runshelf.formatting import moment, shortened
from runshelf.index.rows import GroupRow, Keys, RunRow
from runshelf.index.run_index import Index
from runshelf.web.drawing.metric_order import rank
from runshelf.web.parameters import ROWS, TableView, with_query
from runshelf.web.sanitize import clean

MOST_EXPORTED = 10_000
_MOST_OFFERED = 300
_LONGEST_TITLE = 60
# Longer group names do not fit in an address.
LONGEST_NAME = 2_000
STATES = ("running", "finished", "failed", "interrupted", "stopped", "lost", "imported")


@final
class Column(NamedTuple):
    """A column of the table.

    Attributes:
        label: the heading.
        kind: `text`, `number` or `state`; determines the alignment.
        sorted: `ascending`, `descending` or empty.
        address: link that sorts by this column or reverses the order; empty if not sortable.
        removal: link that removes an additional column.
    """

    label: str
    kind: str
    sorted: str
    address: str
    removal: str


@final
class Table(NamedTuple):
    """A page of the table.

    Attributes:
        columns: all columns except the title.
        chosen: keys of the last columns: settings and metrics.
        rows: the rows of this page.
        titles: names of these rows, shortened where they are alike.
        groups: names of the groups of these rows, shortened in the same way.
        metric: the metric of all results; empty if they have several.
        total: number of rows on all pages.
        error: error message for the filter or sort key; empty if valid.
        keys: keys for filters and columns.
        first: number of the first row, from 1.
        pages: number of pages.
    """

    columns: list[Column]
    chosen: tuple[str, ...]
    rows: Sequence[RunRow | GroupRow]
    titles: list[str]
    groups: list[str]
    metric: str
    total: int
    error: str
    keys: Keys
    first: int
    pages: int


def read_table(index: Index, view: TableView, keys: Keys) -> Table:
    """Return a page of the table; with an invalid filter, an empty page and the error message."""
    chosen = view.columns
    offset = (view.page - 1) * ROWS
    rows: Sequence[RunRow | GroupRow] = ()
    total, message = 0, ""
    try:
        rows, total = _rows(index, view, chosen, ROWS, offset)
    except UserFacingError as error:
        message = str(error)
    metrics = {row.result.metric for row in rows if row.result}
    metric = metrics.pop() if len(metrics) == 1 else ""
    names = [run_title(row) if isinstance(row, RunRow) else row.group for row in rows]
    return Table(
        columns=_columns(view, chosen, metric),
        chosen=chosen,
        rows=rows,
        titles=shortened([clean(name, 400) for name in names], _LONGEST_TITLE),
        groups=shortened([clean(row.group, 400) for row in rows], _LONGEST_TITLE),
        metric=metric,
        total=total,
        error=message,
        keys=_offered(keys),
        first=offset + 1,
        pages=max(1, -(-total // ROWS)),
    )


def csv_of(index: Index, view: TableView) -> str:
    """Return all rows of the table as CSV.

    Raises:
        UserFacingError: the filter or the sort key is invalid.
    """
    chosen = view.columns
    rows, _ = _rows(index, view, chosen, MOST_EXPORTED, 0)
    text = io.StringIO()
    writer = csv.writer(text)
    head = ("group", "runs", "seeds") if view.show == "groups" else ("run", "name", "group")
    more = ("states", "question", "env", "algorithm", "created", "result", "result_metric")
    writer.writerow([csv_cell(cell) for cell in (*head, *more, *chosen)])
    for row in rows:
        values = [row.values.get(column) for column in chosen]
        found = (row.result.value, row.result.metric) if row.result else (None, None)
        writer.writerow([csv_cell(cell) for cell in (*_head(row), *found, *values)])
    return text.getvalue()


def quoted(value: str) -> str:
    """Return a value quoted for a filter."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def group_address(group: str) -> str:
    """Return the address of a group's page."""
    return with_query("/group", [("name", group[:LONGEST_NAME])])


def ordered_states(states: dict[str, int]) -> list[tuple[str, int]]:
    """Return the number of runs in each state, running and finished first."""
    return [(name, states[name]) for name in STATES if states.get(name)]


def _rows(
    index: Index, view: TableView, chosen: Sequence[str], limit: int, offset: int
) -> tuple[Sequence[RunRow | GroupRow], int]:
    query = index.groups if view.show == "groups" else index.runs
    page = query(view.filter, view.sort, tuple(chosen), limit=limit, offset=offset)
    return page.rows, page.total


def _head(row: RunRow | GroupRow) -> Iterable[Any]:
    when = moment(row.created)
    if isinstance(row, GroupRow):
        states = ", ".join(f"{count} {name}" for name, count in ordered_states(row.states))
        first = (row.group, row.runs, row.n)
        return (*first, states, row.question, row.env, row.algorithm, when)
    return (row.ulid, row.name, row.group, row.state, row.question, row.env, row.algorithm, when)


def _columns(view: TableView, chosen: Sequence[str], metric: str) -> list[Column]:
    result = ("result", metric or "result", "number")
    runs = [
        result,
        ("state", "state", "state"),
        ("", "group", "text"),
        ("created", "started", "text"),
        ("seconds", "took", "number"),
    ]
    groups = [
        result,
        ("", "states", "state"),
        ("", "seeds", "number"),
        ("created", "latest", "text"),
    ]
    fixed = groups if view.show == "groups" else runs
    columns = [_column(view, key, label, kind, ()) for key, label, kind in fixed]
    rests = [tuple(c for c in chosen if c != column) for column in chosen]
    return columns + [
        _column(view, column, column, "number", rest)
        for column, rest in zip(chosen, rests, strict=True)
    ]


def _column(view: TableView, key: str, label: str, kind: str, rest: tuple[str, ...]) -> Column:
    direction = {key: "ascending", f"-{key}": "descending"}.get(view.sort, "") if key else ""
    reverse = key if direction == "descending" else f"-{key}"
    label = label.removeprefix("metric.").removeprefix("config.")
    removal = view.address(columns=rest, page=1) if key in view.columns else ""
    address = view.address(sort=sort_key(reverse), page=1) if key else ""
    return Column(label, kind, direction, address, removal)


def sort_key(key: str) -> str:
    """Return a sort key, quoted if it contains commas or spaces."""
    minus, name = ("-", key[1:]) if key.startswith("-") else ("", key)
    return minus + (quoted(name) if any(c in name for c in ', "\\') else name)


def run_title(row: RunRow) -> str:
    """Return the name of a run, or its short id if it has none."""
    return row.name or row.short


def _offered(keys: Keys) -> Keys:
    """Return as many keys as a page can list; users can still type the others."""
    metrics = sorted(keys.metrics, key=rank)
    return keys._replace(config=keys.config[:_MOST_OFFERED], metrics=metrics[:_MOST_OFFERED])
