"""What is drawn and compared: a group with its runs, or a run by itself."""

from collections.abc import Sequence

from backflip.archive.index.index import Index
from backflip.archive.index.rows import RunRow
from backflip.core.errors import UsageError
from backflip.web.archive_pages.figures import MOST_RUNS, Part, Subject
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.table import quoted, run_title

FEWEST, MOST = 2, 10


def rows_of_group(index: Index, group: str) -> list[RunRow]:
    """Return the runs of a group, newest first.

    Raises:
        UsageError: there is no such group.
    """
    page = index.runs(f"group={quoted(group)}", limit=MOST_RUNS)
    rows = [row for row in page.rows if row.group == group]  # a filter does not tell cases apart
    if not rows:
        raise UsageError(f"there is no group `{shown(group, 100)}` here")
    return rows


def row_of_run(index: Index, ulid: str) -> RunRow:
    """Return a run.

    Raises:
        UsageError: there is no such run.
    """
    row = index.run(ulid)
    if row is None:
        raise UsageError(f"there is no run `{shown(ulid, 40)}` here")
    return row


def of_group(rows: Sequence[RunRow]) -> Subject:
    """Return a group as something to be drawn, its oldest run first."""
    parts = tuple(Part(row.folder, run_title(row)) for row in reversed(rows))
    group = rows[0].group
    return Subject("group", group, group, group, _told_apart(rows, parts))


def of_run(row: RunRow) -> Subject:
    """Return a run as something to be drawn."""
    return Subject("run", row.ulid, run_title(row), row.group, (Part(row.folder, run_title(row)),))


def _told_apart(rows: Sequence[RunRow], parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts whose names differ: runs of a group often share theirs."""
    if len({part.name for part in parts}) == len(parts):
        return parts
    return tuple(Part(row.folder, f"…{row.ulid[-8:]}") for row in reversed(rows))
