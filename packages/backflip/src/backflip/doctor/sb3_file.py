"""The older lines of a file of `DoctorCallback`; needs nothing of Stable-Baselines3."""

from collections.abc import Sequence
from pathlib import Path


def lines_so_far(path: Path, names: Sequence[str]) -> list[str]:
    """Return the whole lines of an older file of the callback, without its two first ones.

    A last line without an end is left out: a killed program has written a part of it.

    Args:
        path: the file; there may be none.
        names: its columns. A file with others has no lines for the callback.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            _, head, *lines = file
    except (OSError, ValueError):  # none, or not a text of at least two lines
        return []
    if head.strip() != ",".join(names):
        return []
    return [line for line in lines if line.endswith("\n")]
