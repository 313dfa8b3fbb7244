"""The colour of a group, a hash of its name: the same on every page.

The eight colours can be told apart with any colour vision. If two lines of a chart have the same
colour, the later one is dashed.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, final

COLOURS = 8
DASHES = 4


@final
class LineStyle(NamedTuple):
    """Colour and dash pattern of a line; pattern 0 is solid."""

    colour: int
    dash: int


def colour_of(name: str) -> int:
    """Return the colour of a group."""
    return hashlib.sha256(name.encode("utf-8", "replace")).digest()[0] % COLOURS


def line_styles(names: Sequence[str]) -> list[LineStyle]:
    """Return a line style for each group of one chart, in the same order."""
    colours = [colour_of(name) for name in names]
    return [
        LineStyle(colour, colours[:n].count(colour) % DASHES) for n, colour in enumerate(colours)
    ]
