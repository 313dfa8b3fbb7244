"""The page of notes: all logs, newest first, with links to runs, and a form for a new note."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import UsageError
from runshelf.store.finding import find_run
from runshelf.store.run_ids import SHORT
from runshelf.web.sanitize import clean
from runshelf.web.serving.json_fields import InvalidField, read_fields
from runshelf.worklog.note_text import Note
from runshelf.worklog.notes import LOGS, matching_notes, open_notes, read_notes, write_note

MOST_SHOWN = 200
_LONGEST = 20_000  # characters of a note on the page
_ID = re.compile(r"\b(?:[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9A-HJKMNP-TV-Z]{8})\b")


@final
class Piece(NamedTuple):
    """A part of a text; `run` is the id of the run that it names, or empty."""

    text: str
    run: str


@final
class Shown(NamedTuple):
    """A note on the page; `is_open` says whether it is a confusion without an answer."""

    note: Note
    pieces: list[Piece]
    is_open: bool


def contents(home: Path, runs: Sequence[str], words: str, about: str) -> dict[str, Any]:
    """Return what the page shows.

    Args:
        home: the home.
        runs: the ids of all runs.
        words: words that the notes must have.
        about: the id of the run whose notes are shown; empty for all.

    Raises:
        UserFacingError: a file cannot be read.
    """
    notes = read_notes(home)
    confused = {note.id for note in open_notes(notes, "confusions")}
    found = matching_notes(notes, words.split())
    if about:
        found = [note for note in found if about[-SHORT:] in (note.run, note.answers)]
    by_short = {run[-SHORT:]: run for run in runs}
    shown = [
        Shown(note, _pieces(clean(note.text, _LONGEST), by_short), note.id in confused)
        for note in found[: -MOST_SHOWN - 1 : -1]
    ]
    return {"notes": shown, "total": len(found), "logs": LOGS, "by_short": by_short}


def write(home: Path, body: bytes) -> Note:
    """Write the note of a request.

    Raises:
        UsageError: the request is invalid, or names no run.
        UserFacingError: the note cannot be written.
    """
    try:
        fields = read_fields(body)
        log, text, run = (fields.text(name) for name in ("log", "text", "run"))
    except InvalidField as error:
        raise UsageError(str(error)) from error
    return write_note(home, log, text, run=find_run(home, run) if run else None)


def _pieces(text: str, by_short: dict[str, str]) -> list[Piece]:
    """Return a text in pieces, those that name runs of the home with their ids."""
    pieces, end = list[Piece](), 0
    for found in _ID.finditer(text):
        run = by_short.get(found[0][-SHORT:], "")
        if run and run.endswith(found[0]):
            pieces += [Piece(text[end : found.start()], ""), Piece(found[0], run)]
            end = found.end()
    return [piece for piece in (*pieces, Piece(text[end:], "")) if piece.text]
