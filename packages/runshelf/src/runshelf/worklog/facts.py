"""A decision that is open, and the facts of a home that decisions follow from."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.index.rows import RunRow
from runshelf.worklog.note_text import Note


@final
class Facts(NamedTuple):
    """What decisions follow from.

    Attributes:
        home: the home.
        rows: its newest runs, newest first.
        notes: its notes, oldest first.
    """

    home: Path
    rows: Sequence[RunRow]
    notes: Sequence[Note]


@final
class Decision(NamedTuple):
    """Something that may be decided now.

    Attributes:
        kind: what it is: battery, budget, hours, registration, sweep, question, premortem, finding
            or next.
        text: it in words.
        command: what to type to settle it, after the program's name; may be empty.
        run: the id of its run; empty without one.
        since: since when, in Unix seconds.
    """

    kind: str
    text: str
    command: str
    run: str
    since: float


Source = Callable[[Facts], Iterable[Decision]]
