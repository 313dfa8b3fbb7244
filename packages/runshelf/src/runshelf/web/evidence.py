"""The statistics of groups on the page that compares them: as `compare` on the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.comparison.analysis import Question, compare_sides
from runshelf.comparison.sections import document
from runshelf.comparison.sides import Side
from runshelf.errors import UserFacingError
from runshelf.index.rows import RunRow
from runshelf.web.comparison_file import Part, pictures_of
from runshelf.web.subjects import Subject

_OWN = "What differs"  # the page has a table of its own


@final
class Evidence(NamedTuple):
    """The sections of a comparison, or why there are none."""

    parts: list[Part]
    why_not: str


def evidence_of(
    home: Path, subjects: Sequence[Subject], rows: Sequence[Sequence[RunRow]]
) -> Evidence:
    """Return the statistics of groups over their seeds; nothing if a subject is a single run."""
    if any(subject.kind != "group" for subject in subjects):
        return Evidence([], "")
    sides = [
        Side(subject.title, "group", list(of)) for subject, of in zip(subjects, rows, strict=True)
    ]
    try:
        results = compare_sides(home, sides, Question(), keeps=False)
    except UserFacingError as error:
        return Evidence([], f"The groups are not compared over their seeds: {error}.")
    sections = [one for one in document(results).sections if one.title != _OWN]
    return Evidence([Part(one, pictures_of(results, one)) for one in sections], "")
