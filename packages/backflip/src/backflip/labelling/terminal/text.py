"""Lines of plain text: how many cells they take, cut or centred; and how they are highlighted."""

import itertools
import unicodedata
from collections.abc import Sequence

from runshelf.terminal_text import harmless

RESET = "\x1b[0m"
BOLD, DIM, REVERSE = "\x1b[1m", "\x1b[2m", "\x1b[7m"


def clean(text: str) -> str:
    """Return a person's text in one line, control characters escaped."""
    return harmless(" ".join(text.split()))


def width_of(text: str) -> int:
    """Return the number of cells that plain text takes."""
    return sum(_width(character) for character in text)


def shortened(text: str, width: int) -> str:
    """Return plain text cut to at most `width` cells."""
    if width_of(text) <= width:
        return text
    sums = itertools.accumulate(map(_width, text))
    return "".join(c for c, so_far in zip(text, sums, strict=True) if so_far < width) + "…"


def end_of(text: str, width: int) -> str:
    """Return the end of plain text, at most `width` cells."""
    return shortened(text[::-1], width)[::-1]


def centred(text: str, width: int) -> str:
    """Return plain text centred in `width` cells, cut if it is longer."""
    text = shortened(text, width)
    left = (width - width_of(text)) // 2
    return " " * left + text + " " * (width - width_of(text) - left)


def joined(parts: Sequence[str], width: int, between: str = " · ") -> str:
    """Return the first parts, as many as fit into one line."""
    line = ""
    for part in parts:
        longer = f"{line}{between}{part}" if line else part
        if width_of(longer) > width:
            break
        line = longer
    return line or shortened(parts[0], width)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
