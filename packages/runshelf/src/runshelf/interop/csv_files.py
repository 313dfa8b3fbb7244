"""Reads CSV files of Stable-Baselines3: `progress.csv` and `monitor.csv`.

A cell that is a number becomes that number exactly. An empty cell has no value.
"""

import csv
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from runshelf.errors import DamagedFile
from runshelf.received_json import parse_record
from runshelf.store.files import disk_errors

_WHOLE = re.compile(r"-?[0-9]{1,18}")

Row = dict[str, int | float | str]


class Csv(NamedTuple):
    """The content of a CSV file.

    Attributes:
        head: the JSON of a `#{...}` line before the column names; empty without such a line.
        rows: the rows by column name, parsed while iterating; only one iteration is possible.
        broken: line numbers, from 1, of the rows left out so far.
        names: the column names; of two equal names, the last column counts.
    """

    head: dict[str, Any]
    rows: Iterator[Row]
    broken: list[int]
    names: list[str]


def read_csv(path: Path, numbers: Collection[str] = ()) -> Csv:
    """Return the rows of a CSV file, whose first line may be `#{...}`, JSON about the file.

    Rows are left out and listed as broken if they have more cells than columns, lack a number in a
    column of `numbers`, or are incomplete at the end of the file.

    Args:
        path: the file.
        numbers: the columns that must hold a number in each row.

    Raises:
        DamagedFile: there is no line of column names.
        UserFacingError: the file cannot be read.
    """
    with disk_errors(path):
        text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    whole = lines[:-1]  # a last line without a newline may be incomplete
    head: dict[str, Any] = {}
    start = 0
    if whole and whole[0].startswith("#"):
        start = 1
        head = _head(whole[0][1:])
    if len(whole) <= start:
        raise DamagedFile(f"`{path}` has no line of column names: it is not a training log")
    names = next(_cells(whole[start : start + 1]), [])
    table = Csv(head, iter(()), [len(lines)] if lines[-1] else [], names)
    return table._replace(rows=_rows(table, whole, start + 1, numbers))


def _head(text: str) -> dict[str, Any]:
    try:
        return parse_record(text)
    except ValueError:
        return {}


def _rows(table: Csv, lines: list[str], start: int, numbers: Collection[str]) -> Iterator[Row]:
    for number, line in enumerate(lines[start:], start + 1):
        cells = next(_cells([line]), None)
        if cells is None or len(cells) > len(table.names):
            table.broken.extend([number] if line.strip() else [])
            continue
        # Rows written before a name was first logged have fewer cells.
        pairs = zip(table.names, cells, strict=False)
        row = {name: _value(cell) for name, cell in pairs if name and cell != ""}
        if not all(isinstance(row.get(name), int | float) for name in numbers):
            table.broken.append(number)
            continue
        yield row


def _cells(lines: list[str]) -> Iterator[list[str]]:
    """Yield the cells of each line; stop at a line that is not CSV."""
    try:
        yield from csv.reader(lines, strict=True)
    except csv.Error:
        return


def _value(cell: str) -> int | float | str:
    """Return a cell as a number if it is one, else as text."""
    if _WHOLE.fullmatch(cell):
        return int(cell)
    try:
        return float(cell)
    except ValueError:
        return cell
