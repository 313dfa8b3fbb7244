"""What stands above the table: what runs, which question it answers, when there is news."""

import time
from collections.abc import Sequence
from typing import NamedTuple, final

from backflip.archive.index.rows import GroupRow, RunRow
from backflip.archive.index.run_index import Index
from backflip.archive.run import open_run
from backflip.core.errors import BackflipError
from backflip.web.archive_pages.colours import colour_of
from backflip.web.archive_pages.plain import shown
from backflip.web.archive_pages.progress import Progress, progress_of
from backflip.web.archive_pages.table import group_address, ordered_states, quoted, run_title
from backflip.web.archive_pages.words import roughly

MOST_SHOWN = 8
LATELY = 4
_OTHERS = 20


@final
class Going(NamedTuple):
    """A run that goes on.

    Attributes:
        row: the run.
        title: what it is called.
        group: its group's name, fit to be shown.
        group_address: of its group's page.
        colour: its group's.
        question: what it is to answer.
        progress: how far it has come.
        left: how long it will take, in words.
        note: what its state says beside.
    """

    row: RunRow
    title: str
    group: str
    group_address: str
    colour: int
    question: str
    progress: Progress
    left: str
    note: str


@final
class Lately(NamedTuple):
    """A group that was worked at lately."""

    title: str
    address: str
    colour: int
    question: str
    states: list[tuple[str, int]]
    created: float
    n: int


@final
class Now(NamedTuple):
    """What stands above the table.

    Attributes:
        headline: one sentence: what runs, and when there will be something to decide.
        going: runs that go on, the first to end first.
        more: how many more go on than are listed.
        lately: groups worked at lately.
        total: how many runs there are.
    """

    headline: str
    going: list[Going]
    more: int
    lately: list[Lately]
    total: int


@final
class Asked(NamedTuple):
    """What the index says of now; the rest is in files."""

    running: list[RunRow]
    running_total: int
    others: dict[str, list[float]]
    latest: list[GroupRow]
    total: int


def ask_now(index: Index) -> Asked:
    """Return what the index knows of now."""
    running = index.runs("state=running", limit=MOST_SHOWN)
    others = {group: _durations(index, group) for group in {row.group for row in running.rows}}
    latest = index.groups(limit=LATELY + MOST_SHOWN).rows
    return Asked(running.rows, running.total, others, latest, index.runs(limit=1).total)


def read_now(asked: Asked) -> Now:
    """Return what stands above the table, files read."""
    going = [_going(row, asked.others.get(row.group, [])) for row in asked.running]
    going.sort(key=lambda one: (one.progress.seconds_left is None, one.progress.seconds_left or 0))
    at_work = {row.group for row in asked.running}
    lately = [_lately(row) for row in asked.latest if row.group not in at_work][:LATELY]
    more = asked.running_total - len(going)
    return Now(_headline(going, asked), going, more, lately, asked.total)


def _durations(index: Index, group: str) -> list[float]:
    page = index.runs(f"group={quoted(group)} state=finished", limit=_OTHERS)
    return [row.seconds for row in page.rows if row.seconds]


def _going(row: RunRow, others: Sequence[float]) -> Going:
    try:
        manifest = open_run(row.folder).manifest
    except BackflipError:
        manifest = {}
    elapsed = time.time() - row.created
    progress = progress_of(row.folder, manifest, elapsed, others)
    left = "" if progress.seconds_left is None else roughly(progress.seconds_left)
    return Going(
        row=row,
        title=shown(run_title(row), 120),
        group=shown(row.group, 120),
        group_address=group_address(row.group),
        colour=colour_of(row.group),
        question=shown(row.question, 300),
        progress=progress,
        left=left,
        note=shown(row.note, 200),
    )


def _lately(row: GroupRow) -> Lately:
    return Lately(
        title=shown(row.group, 120),
        address=group_address(row.group),
        colour=colour_of(row.group),
        question=shown(row.question, 300),
        states=ordered_states(row.states),
        created=row.created,
        n=row.n,
    )


def _headline(going: Sequence[Going], asked: Asked) -> str:
    count = asked.running_total
    if not count:
        return "Nothing is running." if asked.total else "There are no runs here yet."
    runs = "One run is going" if count == 1 else f"{count} runs are going"
    ill = sum(bool(one.progress.alarms) for one in going)
    health = f"; {ill} of them should be looked at" if ill and count > 1 else ""
    if ill and count == 1:
        health = "; it should be looked at"
    if not going or not going[0].left:
        return f"{runs}{health}. When there will be something to decide is not known."
    if going[0].left.startswith("less"):
        return f"{runs}{health}. There will be something to decide within a minute."
    return f"{runs}{health}. Nothing to decide for {going[0].left}."
