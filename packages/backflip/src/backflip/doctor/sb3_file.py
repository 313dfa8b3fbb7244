"""The older lines of a file of `DoctorCallback`; needs nothing of Stable-Baselines3."""

import csv
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


def seconds_so_far(lines: Sequence[str], names: Sequence[str]) -> float:
    """Return the last time in the lines of a file of the callback; 0 without one.

    Files of older versions have none.

    Args:
        lines: whole lines, without the two first ones.
        names: the columns of the file.
    """
    last = next(csv.reader(lines[-1:]), list[str]())
    return float(dict(zip(names, last, strict=False)).get("seconds") or 0.0)
