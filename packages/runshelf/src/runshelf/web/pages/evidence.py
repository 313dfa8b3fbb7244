"""The statistics of the page that compares groups and runs: as `compare` on the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.comparison.analysis import Question, compare_sides
from runshelf.comparison.sections import document
from runshelf.comparison.sides import Side, distinct
from runshelf.errors import UserFacingError
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index
from runshelf.web.pages.comparison_file import Part, comparison_file, pictures_of
from runshelf.web.parameters import Chosen
from runshelf.web.subjects import Subject, row_of_run

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


def sides_of(index: Index, chosen: Chosen) -> list[Side]:
    """Return subjects of a page, each a kind and a key, as sides with all their runs.

    Raises:
        UsageError: a run does not exist.
    """
    found: list[Side] = []
    for kind, key in chosen:
        if kind == "group":
            found.append(Side(key, "group", index.members(key)))
        else:
            row = row_of_run(index, key)
            found.append(Side(row.name or row.short, "run", [row]))
    return found


def saved_comparison(home: Path, sides: Sequence[Side]) -> str | None:
    """Return the file that `compare --html` writes; None if the sides cannot be compared."""
    try:
        results = compare_sides(home, distinct(sides), Question(), keeps=False)
    except UserFacingError:
        return None
    return comparison_file(results, document(results))
