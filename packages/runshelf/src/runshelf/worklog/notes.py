"""Four logs of notes, each one Markdown file in `<home>/worklog/`, that people edit too.

    work         what was done, and what is expected next
    runs         runs, the question of each, and the answer
    ideas        what could be tried
    confusions   what is not understood yet

After Matthew Rahtz, "Lessons Learned Reproducing a Deep Reinforcement Learning Paper", 2018.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from runshelf.errors import UsageError, did_you_mean
from runshelf.snapshot.git import find_repository, head_of
from runshelf.snapshot.secrets import find_secrets
from runshelf.store.files import disk_errors
from runshelf.store.home import WORKLOG, make_worklog
from runshelf.store.opening import read_whole
from runshelf.store.paths import is_folder
from runshelf.store.run import Run
from runshelf.store.writing import open_in_place
from runshelf.worklog.note_text import Note, as_markdown, read_markdown, without_controls

LOGS = {
    "work": "what was done, and what is expected next",
    "runs": "runs, the question of each, and the answer",
    "ideas": "what could be tried",
    "confusions": "what is not understood yet",
}
LONGEST = 100_000  # characters of a note
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_COMMIT = 12  # hexadecimal digits of a commit


def read_notes(home: Path, logs: Iterable[str] = LOGS) -> list[Note]:
    """Return the notes of a home, oldest first.

    Raises:
        UserFacingError: a file cannot be read.
    """
    placed: list[tuple[float, Note]] = []
    for log in logs:
        before = 0.0
        for note in read_markdown(log, _read(home, log)):
            # A note without a time stays where it stands in its file.
            before = before if note.time is None else note.time
            placed.append((before, note))
    return [note for _, note in sorted(placed, key=lambda one: one[0])]


def write_note(
    home: Path,
    log: str,
    text: str,
    *,
    expected: str = "",
    run: Run | None = None,
    answers: str = "",
    cwd: Path | None = None,
) -> Note:
    """Append a note to the file of its log, and return it.

    It is written in one piece under a lock: two writers at once lose nothing, and a full disk
    leaves no part of a note. The git commit that is checked out in `cwd` is written with it.

    Args:
        home: the home.
        log: one of `LOGS`.
        text: the text, Markdown. Secrets of this process's environment are masked in it.
        expected: what is expected next; it follows the text after `Next:`.
        run: the run that the note is about.
        answers: the id of the note, or the short form of the id of the run, that it answers.
        cwd: the folder whose repository is asked; by default the current one.

    Raises:
        UsageError: there is no such log, the text is empty or too long, or the home cannot be
            written.
        UserFacingError: the disk is full, or the file is a link.
    """
    if log not in LOGS:
        raise UsageError(f"no log `{log}`{did_you_mean(log, LOGS)} (expected {', '.join(LOGS)})")
    parts = [text.strip(), f"Next: {expected.strip()}" if expected.strip() else ""]
    whole = without_controls("\n\n".join(part for part in parts if part)).strip()
    if not whole:
        raise UsageError("the note is empty: type its text, as in note 'the loss explodes'")
    if len(whole) > LONGEST:
        raise UsageError(
            f"the note has {len(whole):,} characters, at most {LONGEST:,} fit: keep the rest in a "
            "file, and name it in the note"
        )
    whole = find_secrets([], dict(os.environ)).mask(whole)
    id = "".join(secrets.choice(_ALPHABET) for _ in range(6))
    about = run.short if run else ""
    note = Note(
        log=log,
        id=id,
        time=time.time(),
        text=whole,
        expected="",
        run=about,
        commit=_commit_of(cwd or Path.cwd()),
        answers=answers,
    )
    written = as_markdown(note, datetime.fromtimestamp(note.time or 0.0).astimezone())
    _append(home, log, written.encode())
    return read_markdown(log, written)[0]


def find_note(notes: Sequence[Note], id: str) -> Note | None:
    """Return the note with an id, the newest if several have it; None if there is none."""
    return next((note for note in reversed(notes) if note.id == id), None)


def matching_notes(notes: Sequence[Note], words: Sequence[str]) -> list[Note]:
    """Return the notes in which all words occur, in the text or in what is written with it."""
    wanted = [word.casefold() for word in words]

    def whole(note: Note) -> str:
        return f"{note.log} {note.id} {note.run} {note.commit} {note.text}".casefold()

    return [note for note in notes if all(word in whole(note) for word in wanted)]


def open_notes(notes: Sequence[Note], log: str) -> list[Note]:
    """Return the notes of a log that no note answers, and that answer none themselves."""
    answered = {note.answers for note in notes if note.answers}
    return [n for n in notes if n.log == log and n.id not in answered and not n.answers]


def expected_next(notes: Sequence[Note]) -> list[Note]:
    """Return the notes that say what is expected next, as far as that is still open.

    It is until a note answers it, or until a newer note about the same run, or about none, says
    what is expected instead.
    """
    answered = {note.answers for note in notes if note.answers}
    newest = {note.run: note for note in notes if note.expected}
    return [note for note in newest.values() if note.id not in answered]


def path_of(home: Path, log: str) -> Path:
    """Return the file of a log."""
    return home / WORKLOG / f"{log}.md"


def _read(home: Path, log: str) -> str:
    path = path_of(home, log)
    if not is_folder(path.parent):
        return ""
    return (read_whole(path.parent, path.name) or b"").decode("utf-8", "replace")


def _append(home: Path, log: str, data: bytes) -> None:
    folder, path = make_worklog(home), path_of(home, log)
    title = f"# {log.capitalize()}: {LOGS[log]}\n\n".encode()
    while True:
        descriptor = open_in_place(folder, path.name, appends=True)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with disk_errors(path):
                _write_at_end(descriptor, title, data)
            # An editor may have put a new file in the place of this one meanwhile.
            if os.fstat(descriptor).st_nlink:
                return
        finally:
            os.close(descriptor)


def _write_at_end(descriptor: int, title: bytes, data: bytes) -> None:
    """Write a note at the end of a file, or nothing if the disk is full."""
    size = os.fstat(descriptor).st_size
    end = os.pread(descriptor, 2, max(0, size - 2))
    between = title if not size else b"\n" if end.endswith(b"\n") else b"\n\n"
    rest = memoryview(between + data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _commit_of(folder: Path) -> str:
    repository = find_repository(folder)
    return head_of(repository)[:_COMMIT] if repository else ""
