"""The table of what saves labels: each part of the defaults removed in turn, on five tasks."""

from collections.abc import Mapping

from rows import Row
from teach_rows import REMOVED, SAVED

PREFIX = "saves-"
IN_WORDS = {
    "all": "the defaults",
    "additive": "`linear` alone, without additive models",
    "linear-head": "a network, not the Bayesian linear head",
    "disagreement": "queries drawn at random",
    "random-clips": "no clips of random actions",
    "fresh-pairs": "no fresh pairs",
}
INTRO = """\
Each part of the defaults removed in turn: mean true return and worst seed, seeds 1000-1004. A worst
seed that is better without the part is in bold. The command is that of the defaults, with the
option in the last column; `docs/scores/saves-*.json` has every seed and the commit.
"""


def label_savers(rows: Mapping[str, Row]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the head and the lines of the table: what is removed, by task."""
    head = [f"{name}, {command.rpartition(' ')[2]} labels" for name, command in SAVED.items()]
    lines = [
        (
            IN_WORDS[removed],
            *(_cell(rows, task, removed) for task in SAVED),
            f"`{options}`" if options else "",
        )
        for removed, options in REMOVED.items()
    ]
    return ["changed", *head, "option"], lines


def _cell(rows: Mapping[str, Row], task: str, removed: str) -> str:
    """Return mean and worst seed, such as `-152.4 (-161.2)`, or that they are not measured."""
    row, usual = (rows.get(f"{PREFIX}{task}-{one}") for one in (removed, "all"))
    if row is None or usual is None:
        return "not measured"
    worst = f"{row.worst:.1f}"
    return f"{row.mean:.1f} ({f'**{worst}**' if row.worst > usual.worst else worst})"
