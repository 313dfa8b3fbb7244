"""What is drawn and compared: a group with its runs, or a run by itself."""

from collections.abc import Sequence
from typing import NamedTuple, final

from backflip.archive.index.rows import RunRow
from backflip.archive.index.run_index import Index
from backflip.core.errors import UsageError
from backflip.web.archive_pages.figures import Part, Subject
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.table import quoted, run_title

FEWEST, MOST = 2, 10
MOST_RUNS = 200
_MOST_SPELLINGS = 100  # names that differ in case alone


@final
class Runs(NamedTuple):
    """The runs of a subject.

    Attributes:
        rows: newest first.
        left_out: how many older ones there are.
    """

    rows: list[RunRow]
    left_out: int = 0


def runs_of_group(index: Index, group: str) -> Runs:
    """Return the runs of a group, as many as are drawn.

    Raises:
        UsageError: there is no such group.
    """
    page = index.runs(f"group={quoted(group)}", limit=MOST_RUNS)
    rows = [row for row in page.rows if row.group == group]  # a filter does not tell cases apart
    if not rows:
        raise UsageError(f"there is no group `{shown(group, 100)}` here")
    left_out = 0
    if page.total > len(page.rows):
        of_name = index.groups(f"group={quoted(group)}", limit=_MOST_SPELLINGS).rows
        left_out = sum(one.runs for one in of_name if one.group == group) - len(rows)
    return Runs(rows, left_out)


def row_of_run(index: Index, ulid: str) -> RunRow:
    """Return a run.

    Raises:
        UsageError: there is no such run.
    """
    row = index.run(ulid)
    if row is None:
        raise UsageError(f"there is no run `{shown(ulid, 40)}` here")
    return row


def of_group(runs: Runs) -> Subject:
    """Return a group as something to be drawn, its oldest run first."""
    rows = runs.rows
    parts = tuple(Part(row.folder, run_title(row)) for row in reversed(rows))
    group = rows[0].group
    return Subject("group", group, group, group, _told_apart(rows, parts), runs.left_out)


def of_run(row: RunRow) -> Subject:
    """Return a run as something to be drawn."""
    return Subject("run", row.ulid, run_title(row), row.group, (Part(row.folder, run_title(row)),))


def _told_apart(rows: Sequence[RunRow], parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts whose names differ: runs of a group often share theirs."""
    if len({part.name for part in parts}) == len(parts):
        return parts
    return tuple(Part(row.folder, f"…{row.ulid[-8:]}") for row in reversed(rows))
