"""The table of runs and groups: rows, columns, what is wrong with a filter, and the same as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

from backflip.archive.durations import duration
from backflip.archive.index.rows import GroupRow, Keys, RunRow
from backflip.archive.index.run_index import Index
from backflip.core.errors import BackflipError
from backflip.web.archive_pages.colours import colour_of
from backflip.web.archive_pages.figures import rank
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.view import ROWS, TableView, addressed
from backflip.web.archive_pages.words import moment, number

MOST_EXPORTED = 10_000
_MOST_OFFERED = 300
# A group of a longer name can be filtered for; no address is as long.
_LONGEST_NAME = 2_000
_STATES = ("running", "finished", "failed", "interrupted", "stopped", "lost")


@final
class Column(NamedTuple):
    """A column of the table.

    Attributes:
        key: what it is sorted by; empty if it cannot be.
        label: its heading.
        kind: `text`, `number` or `state`: how it is aligned.
        sorted: `ascending`, `descending` or empty.
        address: of the same view sorted by it, the other way round if it is already.
        removal: of the same view without it, for those that were chosen.
    """

    key: str
    label: str
    kind: str
    sorted: str
    address: str
    removal: str


@final
class Cell(NamedTuple):
    """What stands in a row under a column."""

    text: str
    kind: str


@final
class Row(NamedTuple):
    """A row of the table.

    Attributes:
        kind: `group` or `run`.
        key: the group's name, or the run's id.
        address: of its page.
        title: what it is called.
        colour: its group's.
        question: what it is to answer.
        states: how many of its runs are in each state.
        note: why it is in its state; of runs only.
        cells: what stands under the other columns.
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
        view: which.
        columns: all but the first, which is the title.
        rows: what is shown.
        total: how many rows there are in all.
        error: what is wrong with the filter or the sort key, in words; else empty.
        keys: what can be filtered by and shown.
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
    """Return a page of the table; what cannot be understood is said in it."""
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
    """Return the columns of somebody who has chosen none: the most telling metric there is."""
    best = min(keys.metrics, key=lambda name: (rank(name), name), default=None)
    return () if best is None else (f"metric.{best}",)


def csv_of(index: Index, view: TableView, keys: Keys) -> str:
    """Return the table as CSV: every row, not only a page of it.

    Raises:
        BackflipError: the filter or the sort key makes no sense.
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
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = "" if value is None else str(value).replace("\0", "")
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def quoted(value: str) -> str:
    """Return a value as it stands in a filter."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def group_address(group: str) -> str:
    """Return the address of a group's page."""
    return addressed("/group", [("name", group[:_LONGEST_NAME])])


def ordered_states(states: dict[str, int]) -> list[tuple[str, int]]:
    """Return how many runs are in each state, what matters most first."""
    return [(name, states[name]) for name in _STATES if states.get(name)]


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
    """Return a key to sort by as the grammar wants it: in quotes if it holds commas or blanks."""
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
    """Return what a run is called: its name, or the end of its id, which tells it from others."""
    return row.name or f"…{row.ulid[-8:]}"


def _cell(value: object) -> Cell:
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else "text"
    return Cell(shown(number(value), 120), kind)


def _offered(keys: Keys) -> Keys:
    """Return as many keys as a page can list; others can be typed."""
    metrics = sorted(keys.metrics, key=lambda name: (rank(name), name))
    return keys._replace(config=keys.config[:_MOST_OFFERED], metrics=metrics[:_MOST_OFFERED])
