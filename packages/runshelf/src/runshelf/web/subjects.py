"""Subjects of pages: a group or a run has one curve in a chart and one column in a comparison."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UsageError
from runshelf.index.grouping import samples
from runshelf.index.rows import Outline, RunRow
from runshelf.index.run_index import Index
from runshelf.store.results import Result
from runshelf.web.pages.runs_table import quoted, run_title
from runshelf.web.sanitize import clean

MOST_RUNS = 200
_MOST_MATCHES = 5
_MOST_SPELLINGS = 100  # names that differ only in case


@final
class Runs(NamedTuple):
    """The runs of a subject.

    Attributes:
        rows: the runs, newest first.
        left_out: the number of older runs that were left out.
        result: the result of the run, or of the group's independent samples.
    """

    rows: list[RunRow]
    left_out: int = 0
    result: Result | None = None


@final
class Part(NamedTuple):
    """One run of a subject.

    Attributes:
        folder: its folder.
        name: its name within the subject.
        seeds: the seeds that count; None for all. A run without seeds has the seed None.
    """

    folder: Path
    name: str
    seeds: frozenset[int | None] | None = None


@final
@dataclass(frozen=True)
class Subject:
    """A group or a run.

    Attributes:
        kind: `group` or `run`.
        key: the group's name, or the run's id.
        title: its name on the page.
        group: the group's name, which determines the colour.
        parts: its runs with their independent seeds, oldest first.
        read: number of runs that were read.
        left_out: number of older runs that were not read.
        repeats: number of seeds of runs that repeat another run's seed and are not drawn.
    """

    kind: str
    key: str
    title: str
    group: str
    parts: tuple[Part, ...]
    read: int = 1
    left_out: int = 0
    repeats: int = 0


def runs_of_group(index: Index, group: str) -> Runs:
    """Return the newest runs of a group.

    Raises:
        UsageError: the group does not exist.
    """
    page = index.runs(f"group={quoted(group)}", limit=MOST_RUNS)
    rows = [row for row in page.rows if row.group == group]  # filters ignore case
    if not rows:
        raise _no_group(group)
    left_out = 0
    if page.total > len(page.rows):
        spellings = index.groups(f"group={quoted(group)}", limit=_MOST_SPELLINGS).rows
        left_out = sum(row.runs for row in spellings if row.group == group) - len(rows)
    return Runs(rows, left_out, index.result_of(rows))


def row_of_run(index: Index, run: str) -> RunRow:
    """Return a run by its id, a part of its id, its name, or `latest`.

    Raises:
        UsageError: no run or several runs match.
    """
    found = index.called(run)
    if not found:
        raise UsageError(f"there is no run `{clean(run, 40)}` here")
    if len(found) > 1:
        shown = ", ".join(f"{row.short} ({run_title(row)})" for row in found[:_MOST_MATCHES])
        more = len(found) - _MOST_MATCHES
        others = f" and {more} more" if more > 0 else ""
        raise UsageError(
            f"{len(found)} runs match `{clean(run, 40)}`: add one of {clean(shown, 400)}{others}"
        )
    return found[0]


def runs_of(index: Index, chosen: Sequence[tuple[str, str]]) -> list[Runs]:
    """Return the runs of each subject; a subject is given by kind and key.

    Raises:
        UsageError: a group or run does not exist.
    """
    return [
        runs_of_group(index, key) if kind == "group" else _runs_of_run(row_of_run(index, key))
        for kind, key in chosen
    ]


def outlines_of(index: Index, chosen: Sequence[tuple[str, str]]) -> list[Outline]:
    """Return the runs of all subjects, without what takes long to read.

    Raises:
        UsageError: a group or run does not exist.
    """
    found: list[Outline] = []
    for kind, key in chosen:
        if kind == "group":
            found += _outlines_of_group(index, key)
        else:
            found += index.outlines("ulid", row_of_run(index, key).ulid, 1)
    return found


def with_parents(index: Index, outlines: Sequence[Outline]) -> list[Outline]:
    """Return runs and the runs that they repeat."""
    parents = [
        found for outline in outlines for found in index.outlines("ulid", outline.parent or "", 1)
    ]
    return [*outlines, *parents]


def _outlines_of_group(index: Index, group: str) -> list[Outline]:
    found = index.outlines("grouping", group, MOST_RUNS)
    if not found:
        raise _no_group(group)
    return found


def _no_group(group: str) -> UsageError:
    return UsageError(f"there is no group `{clean(group, 100)}` here")


def _runs_of_run(row: RunRow) -> Runs:
    return Runs([row], result=row.result)


def subjects_of(kinds: Sequence[str], found: Sequence[Runs]) -> list[Subject]:
    """Return the subject of each kind and runs; runs of one name have their ids in their titles."""
    subjects = [subject_of(kind, runs) for kind, runs in zip(kinds, found, strict=True)]
    titles = Counter(subject.title for subject in subjects)
    return [
        replace(subject, title=f"{subject.title} ({runs.rows[0].short})")
        if subject.kind == "run" and titles[subject.title] > 1
        else subject
        for subject, runs in zip(subjects, found, strict=True)
    ]


def subject_of(kind: str, runs: Runs) -> Subject:
    """Return the subject that consists of these runs."""
    rows = runs.rows[::-1]
    group, names = rows[0].group, [run_title(row) for row in rows]
    if kind == "run":
        return Subject("run", rows[0].ulid, names[0], group, (Part(rows[0].folder, names[0]),))
    if len({*names}) < len(names):  # runs of a group often share a name
        names = [row.short for row in rows]
    found = samples(rows)
    counted = found.seeds_by_run()
    parts = tuple(
        Part(row.folder, name, frozenset(counted[row.ulid]))
        for row, name in zip(rows, names, strict=True)
        if row.ulid in counted
    )
    repeats = len(found.repeats)
    return Subject(
        kind="group",
        key=group,
        title=group,
        group=group,
        parts=parts,
        read=len(rows),
        left_out=runs.left_out,
        repeats=repeats,
    )
