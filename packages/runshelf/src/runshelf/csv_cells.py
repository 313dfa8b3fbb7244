"""Cells of CSV files that people may open in a spreadsheet."""

import re

# A spreadsheet evaluates a cell that begins like this, and a received run may hold any text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?(e[+-]?\d+)?|inf|nan)")


def csv_cell(value: object) -> object:
    """Return a cell; a text that begins like a formula gets a quote before it.

    A list of numbers does not: programs read it, and a spreadsheet can do nothing but add it up.
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "")
    if not text.startswith(_FORMULA) or all(map(_NUMBER.fullmatch, text.split(" "))):
        return text
    return f"'{text}"
