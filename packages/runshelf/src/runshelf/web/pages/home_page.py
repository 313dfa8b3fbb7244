"""The summary at the top of the home page: running runs with their ends, and recent groups."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.formatting import roughly
from runshelf.index.rows import GroupRow, RunRow
from runshelf.index.run_index import Index
from runshelf.store.progress import Progress, progress_of
from runshelf.web.manifest import is_readable_aside, read_manifest
from runshelf.web.pages.runs_table import quoted
from runshelf.worklog.decisions import MOST_RUNS, open_decisions
from runshelf.worklog.facts import Decision, Facts
from runshelf.worklog.notes import read_notes

MOST_SHOWN = 8
RECENT = 4
_FINISHED = 20


@final
class Running(NamedTuple):
    """A running run; `left` is the estimated remaining time in words."""

    row: RunRow
    progress: Progress
    left: str


@final
class Summary(NamedTuple):
    """The summary.

    Attributes:
        headline: number of running runs and the estimated end of the first.
        running: running runs, in the order of their estimated ends.
        more: number of running runs that are not listed.
        recent: groups of recent runs.
        total: number of all runs.
        decisions: what may be decided now.
        trouble: why that cannot be said; empty if it can.
    """

    headline: str
    running: list[Running]
    more: int
    recent: list[GroupRow]
    total: int
    decisions: list[Decision]
    trouble: str


@final
class IndexSummary(NamedTuple):
    """The part of the summary that comes from the index; progress comes from files.

    Attributes:
        running: running runs, up to `MOST_SHOWN`.
        running_total: number of running runs.
        durations: durations of finished runs in seconds, by group of a running run.
        latest: the latest groups.
        total: number of all runs.
        newest: the newest runs, newest first; decisions follow from them.
    """

    running: list[RunRow]
    running_total: int
    durations: dict[str, list[float]]
    latest: list[GroupRow]
    total: int
    newest: list[RunRow]


def summarise_index(index: Index) -> IndexSummary:
    """Return the part of the summary that comes from the index."""
    running = index.runs("state=running", limit=MOST_SHOWN)
    durations = {group: _durations(index, group) for group in {row.group for row in running.rows}}
    latest = index.groups(limit=RECENT + MOST_SHOWN).rows
    newest = index.runs(limit=MOST_RUNS)
    return IndexSummary(running.rows, running.total, durations, latest, newest.total, newest.rows)


def summarise(home: Path, known: IndexSummary) -> Summary:
    """Return the summary; reads the files of running runs, notes and hours."""
    running = [_running(row, known.durations.get(row.group, [])) for row in known.running]
    running.sort(key=_seconds_left)
    groups = {row.group for row in known.running}
    recent = [row for row in known.latest if row.group not in groups][:RECENT]
    more = known.running_total - len(running)
    decisions, trouble = _decisions(home, known)
    headline = _headline(running, known)
    return Summary(
        headline=headline,
        running=running,
        more=more,
        recent=recent,
        total=known.total,
        decisions=decisions,
        trouble=trouble,
    )


def _decisions(home: Path, known: IndexSummary) -> tuple[list[Decision], str]:
    """Return what may be decided now, or why that cannot be said."""
    try:
        return open_decisions(Facts(home, known.newest, read_notes(home))), ""
    except UserFacingError as error:
        return [], str(error)


def _durations(index: Index, group: str) -> list[float]:
    page = index.runs(f"group={quoted(group)} state=finished", limit=_FINISHED)
    return [row.seconds for row in page.rows if row.seconds]


def _running(row: RunRow, durations: Sequence[float]) -> Running:
    elapsed = time.time() - row.created
    manifest = read_manifest(row.folder) if is_readable_aside(row.folder) else {}
    progress = progress_of(row.folder, manifest, elapsed, durations)
    left = "" if progress.seconds_left is None else roughly(progress.seconds_left)
    return Running(row, progress, left)


def _seconds_left(one: Running) -> float:
    left = one.progress.seconds_left
    return math.inf if left is None else left


def _headline(running: Sequence[Running], known: IndexSummary) -> str:
    count = known.running_total
    if not count:
        return "Nothing is running." if known.total else "There are no runs here yet."
    runs = "1 run is running" if count == 1 else f"{count} runs are running"
    alarming = sum(bool(one.progress.alarms) for one in running)
    if alarming:
        runs += f", {alarming} with warnings" if count > 1 else ", with warnings"
    if not running or not running[0].left:
        return f"{runs}. Its end cannot be estimated." if count == 1 else f"{runs}."
    return f"{runs}. Next run ends in {running[0].left}."
