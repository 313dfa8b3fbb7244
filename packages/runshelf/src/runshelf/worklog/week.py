"""The digest of a week or another span: questions, runs, hours, money, notes."""

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, final

from runshelf.durations import duration
from runshelf.errors import UsageError
from runshelf.formatting import cut, number, plural
from runshelf.index.rows import RunRow
from runshelf.recorder.budget import read_weekly, spent_this_week, week_start
from runshelf.worklog.facts import Facts
from runshelf.worklog.hours import HOUR, forecast, read_ledger, seconds_between, works_until
from runshelf.worklog.inferred_hours import commit_moments, inferred_works
from runshelf.worklog.note_text import Note
from runshelf.worklog.notes import expected_next, open_notes
from runshelf.worklog.questions import Question, questions_of

_DAY = 86_400.0
_SPANS = {"d": _DAY, "w": 7 * _DAY}
_MOST_RUNS = 30
_SHOWN = 300


@final
class Digest(NamedTuple):
    """What happened between two times.

    Attributes:
        since: the begin, in Unix seconds.
        until: the end.
        answered: questions that were answered, with the answers.
        open: questions whose runs have ended without an answer, of any time.
        running: questions on which runs work.
        runs: the runs of the span, newest first.
        run_seconds: how long they ran, all together.
        hours: seconds of people by stage.
        inferred: seconds of work that were not recorded, inferred from runs, commits and notes.
        planned: planned seconds of all stages, of any time.
        spent: spent seconds of all planned stages, of any time.
        remaining: the forecast of the seconds that are left.
        cost: what the runs of the span cost.
        weekly: the weekly budget; None without one.
        spent_this_week: what runs cost since Monday.
        confusions: confusions without an answer, of any time.
        ideas: ideas of the span.
        work: notes of work of the span.
        expected: notes that say what is expected next.
    """

    since: float
    until: float
    answered: list[Question]
    open: list[Question]
    running: list[Question]
    runs: list[RunRow]
    run_seconds: float
    hours: dict[str, float]
    inferred: float
    planned: float
    spent: float
    remaining: float
    cost: float
    weekly: float | None
    spent_this_week: float
    confusions: list[Note]
    ideas: list[Note]
    work: list[Note]
    expected: list[Note]


def begin_of(text: str, now: float) -> float:
    """Return the begin of a span: `week` (Monday), `today`, `7d`, `2w`, or a date.

    Days begin at midnight, local time.

    Raises:
        UsageError: the text is not one of these, or lies in the future.
    """
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    number_of, unit = text[:-1], text[-1:]
    if text == "week":
        return week_start(now)
    if text == "today":
        return midnight.timestamp()
    if number_of.isdecimal() and len(number_of) < 5 and unit in _SPANS:
        return now - int(number_of) * _SPANS[unit]
    try:
        begin = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        begin = None
    if begin is None or begin > now:
        said = "lies in the future" if begin else "is not a time"
        raise UsageError(f"`--since {text}` {said}; try week, today, 7d, 2w or 2026-11-23")
    return begin


def digest_of(facts: Facts, since: float, until: float, cwd: Path | None = None) -> Digest:
    """Return what happened between two times.

    Raises:
        UserFacingError: a file cannot be read.
    """
    home, notes = facts.home, facts.notes
    of_span = [note for note in notes if since <= (note.time or 0.0) < until]
    questions = questions_of(facts.rows, notes)
    new = {note.id for note in of_span}
    runs = [row for row in facts.rows if since <= row.created < until]
    ledger = read_ledger(home)
    works = works_until(ledger, until)
    planned = forecast(ledger, until)
    moments = [row.created for row in runs if row.state != "imported"]
    moments += [note.time for note in of_span if note.time is not None]
    moments += [m for m in commit_moments(cwd or Path.cwd(), since) if m < until]
    return Digest(
        since=since,
        until=until,
        answered=[q for q in questions if any(note.id in new for note in q.answers)],
        open=[q for q in questions if q.standing == "open"],
        running=[q for q in questions if q.standing == "running"],
        runs=runs,
        run_seconds=sum(row.seconds or 0.0 for row in runs),
        hours=seconds_between(works, since, until),
        inferred=sum(seconds_between(inferred_works(moments, works), since, until).values()),
        planned=sum(ledger.plans.values()),
        spent=sum(row.spent for row in planned.rows if row.planned is not None),
        remaining=planned.remaining,
        cost=sum(row.cost or 0.0 for row in runs),
        weekly=read_weekly(home),
        spent_this_week=sum(one.cost for one in spent_this_week(home)),
        confusions=open_notes(notes, "confusions"),
        ideas=[note for note in of_span if note.log == "ideas"],
        work=[note for note in of_span if note.log == "work"],
        expected=expected_next(notes),
    )


def as_markdown(digest: Digest) -> str:
    """Return a digest as Markdown."""
    sections = {
        "Questions answered": [_answered(question) for question in digest.answered],
        "Questions open": [_asked(question) for question in digest.open],
        "Questions running": [_asked(question) for question in digest.running],
        f"Runs ({len(digest.runs)})": _runs(digest.runs),
        "Spent against planned": _spent(digest),
        "Confusions open": [_noted(note) for note in digest.confusions],
        "Ideas": [_noted(note) for note in digest.ideas],
        "Work done": [_noted(note) for note in digest.work],
        "Expected next": [_line(note.expected) for note in digest.expected],
    }
    parts = [f"# {_day(digest.since)} to {_day(digest.until)}"]
    for title, lines in sections.items():
        items = "\n".join(f"- {line}" for line in lines) or "none"
        parts.append(f"## {title}\n\n{items}")
    return "\n\n".join(parts) + "\n"


def _answered(question: Question) -> str:
    return f"{_line(question.text)} **{_line(question.answers[-1].text)}** ({_ids(question)})"


def _asked(question: Question) -> str:
    return f"{_line(question.text)} ({_ids(question)})"


def _ids(question: Question) -> str:
    shown = ", ".join(f"`{row.short}`" for row in question.runs[:3])
    more = len(question.runs) - 3
    return f"{plural(len(question.runs), 'run')}: {shown}" + (f" and {more} more" * (more > 0))


def _runs(rows: Sequence[RunRow]) -> list[str]:
    lines = [_run(row) for row in rows[:_MOST_RUNS]]
    more = len(rows) - _MOST_RUNS
    return [*lines, *([f"and {more} more"] if more > 0 else [])]


def _run(row: RunRow) -> str:
    result = ""
    if row.result:
        value = row.result.missing if row.result.value is None else number(row.result.value)
        result = f", {row.result.metric} {value}"
    what = row.name or " ".join(part for part in (row.algorithm, row.env) if part) or row.command
    return f"`{row.short}` {_line(what)}: {row.state}{_line(result)}, {duration(row.seconds)}"


def _spent(digest: Digest) -> list[str]:
    lines = [f"{_line(stage)}: {duration(s)}" for stage, s in digest.hours.items()]
    if digest.inferred:
        lines.append(
            f"not recorded, inferred from runs, commits and notes: {duration(digest.inferred)}"
        )
    if digest.planned:
        lines.append(
            f"all planned stages: {duration(digest.spent) or '0 s'} of {duration(digest.planned)}, "
            f"forecast {duration(digest.remaining)} more"
        )
    lines.append(f"compute: {digest.run_seconds / HOUR:.2f} h of runs, cost {digest.cost:.2f}")
    if digest.weekly is not None:
        lines.append(f"weekly budget: {digest.spent_this_week:.2f} of {digest.weekly:g}")
    return lines


def _noted(note: Note) -> str:
    about = f" (run `{note.run}`)" if note.run else ""
    return f"{_line(note.text)}{about} · {note.id}"


def _line(text: str) -> str:
    return cut(" ".join(text.split()), _SHOWN)


def _day(unix: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix))
