"""The colour of a group, which comes from its name and is the same everywhere.

There are eight colours that work for all kinds of colour vision. If two lines of a chart share a
colour, the later one is dashed.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, final

COLOURS = 8
DASHES = 4


@final
class Look(NamedTuple):
    """The colour of a line and its dash pattern; pattern 0 is a solid line."""

    colour: int
    dash: int


def colour_of(name: str) -> int:
    """Return the colour of a group."""
    return hashlib.sha256(name.encode("utf-8", "replace")).digest()[0] % COLOURS


def looks_of(names: Sequence[str]) -> list[Look]:
    """Return the looks of lines of these groups in one chart, in the same order."""
    colours = [colour_of(name) for name in names]
    return [
        Look(colour, colours[:place].count(colour) % DASHES) for place, colour in enumerate(colours)
    ]
