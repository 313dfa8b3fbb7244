"""What may be decided now, and when the next run ends.

Each source of decisions is a function in `SOURCES`; another one takes one line there.
"""

import os
import statistics
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.formatting import cut, plural
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index
from runshelf.recorder.budget import read_weekly, spent_this_week
from runshelf.store.diagnosis import read_diagnosis
from runshelf.store.progress import Progress, progress_of
from runshelf.store.run import open_run
from runshelf.worklog.experiments import complete_registrations, unreported_sweeps, worse_rows
from runshelf.worklog.facts import Decision, Facts, Source
from runshelf.worklog.hours import overlong_stage
from runshelf.worklog.notes import expected_next, read_notes
from runshelf.worklog.premortems import FILE, read_premortem
from runshelf.worklog.questions import questions_of

MOST_RUNS = 1_000  # the newest; what older runs leave open is no longer looked for
_ALL_RUNS = 2**31
MOST_LOOKED_AT = 50  # runs whose files are read
_SHOWN = 160  # characters of a text
_NEARLY = 0.8  # of the weekly budget


@final
class Upcoming(NamedTuple):
    """A running run, and how far it is."""

    row: RunRow
    progress: Progress


@final
class Now(NamedTuple):
    """What may be decided now, and the running runs, the one that ends first at the top."""

    decisions: list[Decision]
    upcoming: list[Upcoming]

    @property
    def seconds_to_next(self) -> float | None:
        """The estimated seconds until the next run ends; None without an estimate."""
        return min((s for s in map(_left, self.upcoming) if s is not None), default=None)


def facts_of(home: Path, index: Index) -> Facts:
    """Return the facts of a home, with its newest runs.

    Raises:
        UserFacingError: the index or a note cannot be read.
    """
    return Facts(home, index.runs(limit=MOST_RUNS).rows, read_notes(home))


def all_facts_of(home: Path, index: Index) -> Facts:
    """Return the facts of a home with all of its runs, of which costs and hours are sums.

    Raises:
        UserFacingError: the index or a note cannot be read.
    """
    return Facts(home, index.runs(limit=_ALL_RUNS).rows, read_notes(home))


def open_decisions(facts: Facts, sources: Sequence[Source] | None = None) -> list[Decision]:
    """Return what may be decided now, from all sources.

    Raises:
        UserFacingError: the budget or the hours cannot be read.
    """
    found = SOURCES if sources is None else sources
    return [decision for source in found for decision in source(facts)]


def look_at(facts: Facts) -> Now:
    """Return what may be decided now, and what runs.

    Raises:
        UserFacingError: the budget or the hours cannot be read.
    """
    upcoming = [_upcoming(row, facts.rows) for row in facts.rows if row.state == "running"]
    ends = [(_left(one), number) for number, one in enumerate(upcoming)]
    order = sorted(ends, key=lambda end: (end[0] is None, end[0] or 0.0, end[1]))
    return Now(open_decisions(facts), [upcoming[number] for _, number in order])


def budget_state(facts: Facts) -> Iterable[Decision]:
    """Yield a decision if most of the weekly budget of the home is spent."""
    weekly = read_weekly(facts.home)
    if weekly is None:
        return
    spent = sum(one.cost for one in spent_this_week(facts.home))
    if spent >= _NEARLY * weekly and spent > 0:
        how = "is spent" if spent >= weekly else f"is {spent / weekly:.0%} spent"
        text = f"The weekly budget {how}: {spent:.2f} of {weekly:g}."
        yield Decision("budget", text, "budget", "", time.time())


def _hours(facts: Facts) -> Iterable[Decision]:
    found = overlong_stage(facts.home, time.time())
    if found:
        yield Decision("hours", found.in_words, "hours stop --worked 2h", "", found.begin)


def _questions(facts: Facts) -> Iterable[Decision]:
    for question in questions_of(facts.rows, facts.notes):
        newest = question.runs[0]
        if question.standing == "open":
            of = f"{plural(len(question.runs), 'run')}, the newest {newest.state}"
            text = f"{cut(question.text, _SHOWN)} ({of})"
            command = f"note 'the answer' --answers {newest.short}"
            yield Decision("question", text, command, newest.ulid, newest.created)


def _premortems(facts: Facts) -> Iterable[Decision]:
    for row in facts.rows[:MOST_LOOKED_AT]:
        if row.state == "running" or not os.path.lexists(row.folder / FILE):
            continue
        with suppress(UserFacingError):
            found = read_premortem(open_run(row.folder))
            if found and not found.has_outcome:
                text = f"What came true of the premortem of {_title(row)}?"
                command = f"premortem {row.short} --outcome"
                yield Decision("premortem", text, command, row.ulid, row.created)


def _findings(facts: Facts) -> Iterable[Decision]:
    for row in facts.rows[:MOST_LOOKED_AT]:
        newest = max(
            (n.time or 0.0 for n in facts.notes if row.short in (n.run, n.answers)), default=0
        )
        alarms = list[str]()
        with suppress(UserFacingError):
            alarms = open_run(row.folder).alarms() if row.state != "imported" else []
        said = read_diagnosis(row.folder)
        for text in [*alarms, *([said.in_words] if said and said.findings else [])]:
            if newest < int(row.created):  # there is no note about the run yet
                command = f"note 'what I make of it' --run {row.short}"
                words = f"{cut(' '.join(text.split()), _SHOWN)} ({_title(row)})"
                yield Decision("finding", words, command, row.ulid, row.created)


def _next(facts: Facts) -> Iterable[Decision]:
    for note in reversed(expected_next(facts.notes)):
        text = f"You expected next: {cut(note.expected, _SHOWN)}"
        command = f"note 'what happened' --answers {note.id}"
        yield Decision("next", text, command, "", note.time or 0.0)


SOURCES: tuple[Source, ...] = (
    budget_state,
    _hours,
    complete_registrations,
    unreported_sweeps,
    worse_rows,
    _questions,
    _findings,
    _premortems,
    _next,
)


def _upcoming(row: RunRow, rows: Sequence[RunRow]) -> Upcoming:
    usual = [
        one.seconds
        for one in rows
        if one.group == row.group and one.state == "finished" and one.seconds
    ]
    try:
        manifest = open_run(row.folder).manifest
    except UserFacingError:
        manifest = {}
    usual = [statistics.median(usual)] if usual else []
    return Upcoming(row, progress_of(row.folder, manifest, time.time() - row.created, usual))


def _left(one: Upcoming) -> float | None:
    return one.progress.seconds_left


def _title(row: RunRow) -> str:
    return f"run {row.short}" + (f", {cut(row.name, 60)}" if row.name else "")
