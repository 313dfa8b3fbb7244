"""The table of runs and groups: rows, columns, errors of a filter, and the table as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

from backflip.archive.formatting import duration, moment, number
from backflip.archive.index.index import Index
from backflip.archive.index.rows import GroupRow, Keys, RunRow
from backflip.core.errors import BackflipError
from backflip.web.archive_pages.colours import colour_of
from backflip.web.archive_pages.metric_order import rank
from backflip.web.archive_pages.parameters import ROWS, TableView, addressed
from backflip.web.archive_pages.sanitize import shown

MOST_EXPORTED = 10_000
_MOST_OFFERED = 300
# Longer names of groups do not fit into an address.
_LONGEST_NAME = 2_000
STATES = ("running", "finished", "failed", "interrupted", "stopped", "lost")


@final
class Column(NamedTuple):
    """A column of the table.

    Attributes:
        key: the sort key; empty if there is none.
        label: the heading.
        kind: `text`, `number` or `state`, for the alignment.
        sorted: `ascending`, `descending` or empty.
        address: the view sorted by it, or in the other direction.
        removal: the view without it, for chosen columns.
    """

    key: str
    label: str
    kind: str
    sorted: str
    address: str
    removal: str


@final
class Cell(NamedTuple):
    """A cell of the table."""

    text: str
    kind: str


@final
class Row(NamedTuple):
    """A row of the table.

    Attributes:
        kind: `group` or `run`.
        key: the group's name, or the run's id.
        address: its page.
        title: its name.
        colour: the colour of its group.
        question: the question it answers.
        states: how many of its runs are in each state.
        note: why a run is in its state; empty for a group.
        cells: the other columns.
    """

    kind: str
    key: str
    address: str
    title: str
    colour: int
    question: str
    states: list[tuple[str, int]]
    note: str
    cells: list[Cell]


@final
class Table(NamedTuple):
    """A page of the table.

    Attributes:
        view: what the address says.
        columns: all but the first, which is the title.
        rows: the rows of this page.
        total: how many rows there are in all.
        error: what is wrong with the filter or the sort key; else empty.
        keys: keys to filter by and to show.
        first: the number of the first row, from 1.
        pages: how many pages there are.
    """

    view: TableView
    columns: list[Column]
    rows: list[Row]
    total: int
    error: str
    keys: Keys
    first: int
    pages: int


NO_KEYS = Keys([], [], [], [], [], [])


def read_table(index: Index, view: TableView, keys: Keys) -> Table:
    """Return a page of the table, or an empty one with the error in the filter."""
    chosen = view.columns or default_columns(keys)
    offset = (view.page - 1) * ROWS
    error = ""
    rows: Sequence[RunRow | GroupRow] = ()
    total = 0
    try:
        rows, total = _rows(index, view, chosen, ROWS, offset)
    except BackflipError as wrong:
        error = str(wrong)
    return Table(
        view=view,
        columns=_columns(view, chosen),
        rows=[_row(row, chosen) for row in rows],
        total=total,
        error=error,
        keys=_offered(keys),
        first=offset + 1,
        pages=max(1, -(-total // ROWS)),
    )


def default_columns(keys: Keys) -> tuple[str, ...]:
    """Return the default columns: the first metric there is."""
    best = min(keys.metrics, key=rank, default=None)
    return () if best is None else (f"metric.{best}",)


def csv_of(index: Index, view: TableView, keys: Keys) -> str:
    """Return all rows of the table as CSV.

    Raises:
        BackflipError: the filter or the sort key is invalid.
    """
    chosen = view.columns or default_columns(keys)
    rows, _ = _rows(index, view, chosen, MOST_EXPORTED, 0)
    text = io.StringIO()
    writer = csv.writer(text)
    head = ("group", "runs", "seeds") if view.show == "groups" else ("run", "name", "group")
    more = ("states", "question", "env", "algorithm", "created")
    writer.writerow([harmless(cell) for cell in (*head, *more, *chosen)])
    for row in rows:
        values = [row.values.get(column) for column in chosen]
        writer.writerow([harmless(cell) for cell in (*_head(row), *values)])
    return text.getvalue()


def harmless(value: Any) -> Any:
    """Return a cell that no spreadsheet reads as a formula; numbers stay numbers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = "" if value is None else str(value).replace("\0", "")
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def quoted(value: str) -> str:
    """Return a value quoted for a filter."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def group_address(group: str) -> str:
    """Return the address of a group's page."""
    return addressed("/group", [("name", group[:_LONGEST_NAME])])


def ordered_states(states: dict[str, int]) -> list[tuple[str, int]]:
    """Return how many runs are in each state, running and finished first."""
    return [(name, states[name]) for name in STATES if states.get(name)]


def _rows(
    index: Index, view: TableView, chosen: Sequence[str], limit: int, offset: int
) -> tuple[Sequence[RunRow | GroupRow], int]:
    ask = index.groups if view.show == "groups" else index.runs
    page = ask(view.filter, view.sort, tuple(chosen), limit=limit, offset=offset)
    return page.rows, page.total


def _head(row: RunRow | GroupRow) -> Iterable[Any]:
    when = moment(row.created)
    if isinstance(row, GroupRow):
        states = ", ".join(f"{count} {name}" for name, count in ordered_states(row.states))
        first = (row.group, row.runs, row.n)
        return (*first, states, row.question, row.env, row.algorithm, when)
    return (row.ulid, row.name, row.group, row.state, row.question, row.env, row.algorithm, when)


def _columns(view: TableView, chosen: Sequence[str]) -> list[Column]:
    runs = [
        ("state", "state", "state"),
        ("", "group", "text"),
        ("created", "started", "text"),
        ("seconds", "took", "number"),
    ]
    groups = [("", "states", "state"), ("", "seeds", "number"), ("created", "latest", "text")]
    usual = groups if view.show == "groups" else runs
    columns = [_column(view, key, label, kind, ()) for key, label, kind in usual]
    left = [tuple(c for c in chosen if c != column) for column in chosen]
    return columns + [
        _column(view, column, column, "number", rest)
        for column, rest in zip(chosen, left, strict=True)
    ]


def _column(view: TableView, key: str, label: str, kind: str, rest: tuple[str, ...]) -> Column:
    direction = {key: "ascending", f"-{key}": "descending"}.get(view.sort, "") if key else ""
    turned = key if direction == "descending" else f"-{key}"
    label = label.removeprefix("metric.").removeprefix("config.")
    removal = view.address(columns=rest, page=1) if key in view.columns else ""
    address = view.address(sort=sort_key(turned), page=1) if key else ""
    return Column(key, shown(label, 120), kind, direction, address, removal)


def sort_key(key: str) -> str:
    """Return a sort key, quoted if it holds commas or spaces."""
    minus, name = ("-", key[1:]) if key.startswith("-") else ("", key)
    return minus + (quoted(name) if any(c in name for c in ', "\\') else name)


def _row(row: RunRow | GroupRow, chosen: Sequence[str]) -> Row:
    values = [_cell(row.values.get(column)) for column in chosen]
    if isinstance(row, GroupRow):
        return Row(
            kind="group",
            key=row.group[:_LONGEST_NAME],
            address=group_address(row.group),
            title=shown(row.group, 200),
            colour=colour_of(row.group),
            question=shown(row.question, 300),
            states=ordered_states(row.states),
            note="",
            cells=[Cell(str(row.n), "number"), Cell(moment(row.created), "time"), *values],
        )
    return Row(
        kind="run",
        key=row.ulid,
        address=f"/runs/{row.ulid}",
        title=shown(run_title(row), 200),
        colour=colour_of(row.group),
        question=shown(row.question, 300),
        states=[(row.state, 1)],
        note=shown(row.note, 200),
        cells=[
            Cell(shown(row.group, 120), "text"),
            Cell(moment(row.created), "time"),
            Cell(duration(row.seconds), "number"),
            *values,
        ],
    )


def run_title(row: RunRow) -> str:
    """Return the name of a run, or the end of its id if it has none."""
    return row.name or f"…{row.ulid[-8:]}"


def _cell(value: object) -> Cell:
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else "text"
    return Cell(shown(number(value), 120), kind)


def _offered(keys: Keys) -> Keys:
    """Return as many keys as a page can list; others can still be typed."""
    metrics = sorted(keys.metrics, key=rank)
    return keys._replace(config=keys.config[:_MOST_OFFERED], metrics=metrics[:_MOST_OFFERED])
