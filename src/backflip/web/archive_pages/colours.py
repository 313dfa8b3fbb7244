"""The colour of a group: the same on every page, in every comparison, on every machine.

It comes from the group's name alone. There are eight, told apart by people of every kind of colour
vision; where two lines of one picture share a colour, the later one is dashed.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, final

COLOURS = 8
DASHES = 4


@final
class Look(NamedTuple):
    """How a line is drawn.

    Attributes:
        colour: which of the colours; the style sheet has one of each for light and dark.
        dash: which pattern; 0 is a whole line.
    """

    colour: int
    dash: int


def colour_of(name: str) -> int:
    """Return the colour of a group."""
    return hashlib.sha256(name.encode("utf-8", "replace")).digest()[0] % COLOURS


def looks_of(names: Sequence[str]) -> list[Look]:
    """Return how lines of these groups are drawn in one picture, in the same order."""
    colours = [colour_of(name) for name in names]
    return [
        Look(colour, colours[:place].count(colour) % DASHES) for place, colour in enumerate(colours)
    ]
