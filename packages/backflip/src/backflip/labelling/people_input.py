"""Checks of what people send: names, goals, times, and the ids of keystrokes."""

import math
import unicodedata

from backflip.labelling.refused import Refused
from backflip.preferences.label_records import DEMONSTRATION
from runshelf.errors import shown

LONGEST_TEXT = 200  # characters of a goal
LONGEST_NAME = 40


def checked_name(who: str) -> str:
    """Return a labeller's name, trimmed.

    Raises:
        Refused: it is empty, too long, has invisible characters, or has a meaning of its own.
    """
    name = unicodedata.normalize("NFC", " ".join(who.split()))
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(
            "invalid", f"a name has 1 to {LONGEST_NAME} visible characters, got `{name[:60]!r}`"
        )
    if name == DEMONSTRATION:
        raise Refused("invalid", f"`{name}` means labels of demonstrations: choose another name")
    return name


def checked_goal(text: object) -> str:
    """Return a goal on one line, without invisible characters.

    Raises:
        Refused: it is not text, or it is too long.
    """
    if not isinstance(text, str):
        raise Refused("invalid", f"the goal must be text, got {shown(text)}")
    text = on_one_line(text)
    if len(text) > LONGEST_TEXT:
        raise Refused("invalid", f"the goal has {len(text)} characters; at most {LONGEST_TEXT} fit")
    return text


def on_one_line(text: str) -> str:
    """Return a text on one line, without invisible characters."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def check_seconds(seconds: float) -> None:
    """Refuse a time that is not finite, or negative."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise Refused("invalid", f"`seconds` is {seconds}: expected a number, 0 or more")


def check_attempt(attempt: str) -> None:
    """Refuse an id of a keystroke that has another form."""
    if not (8 <= len(attempt) <= 64 and attempt.isascii() and attempt.isprintable()):
        said = f"`attempt` must be 8 to 64 printable ASCII characters, got {len(attempt)}"
        raise Refused("invalid", said)
