"""The command `note`."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home, whole
from runshelf.errors import UsageError
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.worklog.note_text import Note

    Outcome = dict[str, Any] | None


def add(commands: Any) -> None:
    """Add the commands."""
    parser = add_command(
        commands,
        "note",
        _note,
        "write a note into one of four logs, or read them",
        "Write a note into a Markdown file of worklog/ in the home, with the time and the git "
        "commit. Without TEXT, print the newest notes.",
    )
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the note; `-` reads stdin")
    parser.add_argument(
        "--log",
        metavar="LOG",
        help="work (default), runs (default with --run), ideas or confusions",
    )
    parser.add_argument("--run", metavar="RUN", help=f"the run that it is about: {RUN}")
    parser.add_argument("--next", metavar="TEXT", dest="expected", help="what is expected next")
    parser.add_argument(
        "--answers",
        metavar="NOTE|RUN",
        help="the note answers this confusion, or the question of this run, and closes it",
    )
    parser.add_argument(
        "--search", nargs="+", metavar="WORD", help="print the notes that have all words"
    )
    parser.add_argument(
        "--limit", type=whole(1, 1_000_000, 50), default=20, metavar="N", help="most notes to print"
    )
    add_output(parser)


def _note(options: argparse.Namespace) -> "Outcome":
    if options.text or options.expected:
        if options.search:
            raise UsageError("write a note or search for one: leave out TEXT or --search")
        return _write(options)
    if options.answers is not None:
        raise UsageError("missing: TEXT, the answer; try note 'it was the seed' --answers NOTE")
    return _list(options)


def _write(options: argparse.Namespace) -> "Outcome":
    from runshelf.store.finding import find_run
    from runshelf.worklog.notes import path_of, write_note

    text = " ".join(options.text)
    if text == "-":
        text = sys.stdin.read()
    run = find_run(home(options), options.run) if options.run is not None else None
    log, answers = _answered(options)
    if answers and run is None and log == "runs":
        run = find_run(home(options), options.answers)
    log = options.log or log or ("runs" if run else "work")
    note = write_note(
        home(options), log, text, expected=options.expected or "", run=run, answers=answers
    )
    path = path_of(home(options), log)
    if options.json:
        return as_fields(note) | {"file": str(path)}
    put(f"note {note.id} in {harmless(path)}")
    return None


def _answered(options: argparse.Namespace) -> tuple[str, str]:
    """Return the log of the note or run that a note answers, and its id; empty without one."""
    from runshelf.store.finding import find_run
    from runshelf.worklog.notes import find_note, read_notes

    if options.answers is None:
        return "", ""
    found = find_note(read_notes(home(options)), options.answers)
    if found:
        return found.log, found.id
    try:
        return "runs", find_run(home(options), options.answers).short
    except UsageError as error:
        raise UsageError(f"there is no note `{options.answers}`; {error}") from error


def _list(options: argparse.Namespace) -> "Outcome":
    from runshelf.store.finding import find_run
    from runshelf.worklog.notes import LOGS, matching_notes, read_notes

    logs = [options.log] if options.log else list(LOGS)
    if options.log and options.log not in LOGS:
        raise UsageError(f"no log `{options.log}` (expected {', '.join(LOGS)})")
    found = matching_notes(read_notes(home(options), logs), options.search or [])
    if options.run is not None:
        short = find_run(home(options), options.run).short
        found = [note for note in found if short in (note.run, note.answers)]
    shown = found[-options.limit :]
    if options.json:
        return {"notes": [as_fields(note) for note in shown], "total": len(found)}
    if not found:
        put("no notes" + (" have these words" if options.search else " yet: note 'what I did'"))
        return None
    put("\n\n".join(in_words(note) for note in shown))
    if len(shown) < len(found):
        put(f"{len(shown)} of {len(found)}; --limit shows more", file=sys.stderr)
    return None


def as_fields(note: "Note") -> dict[str, Any]:
    """Return the JSON fields of a note; `time` is in Unix seconds."""
    return note._asdict()


def in_words(note: "Note") -> str:
    """Return a note for the terminal."""
    from runshelf.cli.tables import moment_of

    parts = [moment_of(note.time) if note.time is not None else "no date", note.log, note.id]
    named = {"run": note.run, "commit": note.commit, "answers": note.answers}
    parts += [f"{name} {value}" for name, value in named.items() if value]
    lines: Sequence[str] = note.text.split("\n")
    return "\n".join([" · ".join(parts), *(f"    {line}".rstrip() for line in lines)])
