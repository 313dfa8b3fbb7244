"""The questions that runs answer: which are answered by notes, and which are open."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, final

from runshelf.index.rows import RunRow
from runshelf.worklog.note_text import Note

Standing = Literal["answered", "open", "running"]


@final
class Question(NamedTuple):
    """A question with its runs and answers.

    Attributes:
        text: the question.
        runs: the runs that ask it, newest first.
        answers: the notes that answer it, oldest first.
        standing: `running` if a run still works on it. Else `answered` if a note answers it that
            is newer than the newest run, and `open` if not.
    """

    text: str
    runs: list[RunRow]
    answers: list[Note]
    standing: Standing


def questions_of(rows: Sequence[RunRow], notes: Sequence[Note]) -> list[Question]:
    """Return the questions of runs, the one with the newest run first.

    Runs with the same question belong together: an answer for one of them answers it for all.

    Args:
        rows: the runs, newest first.
        notes: all notes, oldest first.
    """
    by_text: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.question and row.question.strip():
            by_text.setdefault(" ".join(row.question.split()), []).append(row)
    return [_question(text, runs, notes) for text, runs in by_text.items()]


def _question(text: str, runs: list[RunRow], notes: Sequence[Note]) -> Question:
    ids = {row.short for row in runs}
    answers = [note for note in notes if note.answers in ids]
    if any(row.state == "running" for row in runs):
        return Question(text, runs, answers, "running")
    # A note has its time in whole seconds.
    newest = int(max(row.created for row in runs))
    is_answered = any(note.time is None or note.time >= newest for note in answers)
    return Question(text, runs, answers, "answered" if is_answered else "open")
