"""CSV files of Stable-Baselines3: `progress.csv` and `monitor.csv`.

Cells are numbers where they can be, bit for bit as Python reads them; empty cells are no values.
"""

import csv
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from runshelf.errors import DamagedFile
from runshelf.store.files import disk_errors

_WHOLE = re.compile(r"-?[0-9]{1,18}")

Row = dict[str, int | float | str]


class Csv(NamedTuple):
    """A file of rows.

    Attributes:
        head: what the line before the names says; empty if there is no such line.
        rows: by name; read when asked for, once.
        broken: the numbers of lines that were left out, as they are found; 1 is the first.
        names: all names; of two columns of one name the last counts.
    """

    head: dict[str, Any]
    rows: Iterator[Row]
    broken: list[int]
    names: list[str]


def read_csv(path: Path, numbers: Collection[str] = ()) -> Csv:
    """Return the rows of a CSV file, whose first line may be `#{...}`, JSON about the file.

    A row that has more cells than there are names, or no number where one must be, or that is torn
    at the end of the file, is left out and named.

    Args:
        path: the file.
        numbers: the columns in which each row has a number.

    Raises:
        DamagedFile: it has no line of names.
        UserFacingError: it cannot be read.
    """
    with disk_errors(path):
        text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    whole = lines[:-1]  # what no newline ends, a kill may have cut short
    head: dict[str, Any] = {}
    start = 0
    if whole and whole[0].startswith("#"):
        start = 1
        head = _head(whole[0][1:])
    if len(whole) <= start:
        raise DamagedFile(f"`{path}` has no line of names: it is no CSV file of a training")
    names = next(_cells(whole[start : start + 1]), [])
    table = Csv(head, iter(()), [len(lines)] if lines[-1] else [], names)
    return table._replace(rows=_rows(table, whole, start + 1, numbers))


def _head(text: str) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return head if isinstance(head, dict) else {}


def _rows(table: Csv, lines: list[str], start: int, numbers: Collection[str]) -> Iterator[Row]:
    for number, line in enumerate(lines[start:], start + 1):
        cells = next(_cells([line]), None)
        if cells is None or len(cells) > len(table.names):
            table.broken.extend([number] if line.strip() else [])
            continue
        # Fewer cells than names: the rows before a name was first logged.
        pairs = zip(table.names, cells, strict=False)
        row = {name: _value(cell) for name, cell in pairs if name and cell != ""}
        if not all(isinstance(row.get(name), int | float) for name in numbers):
            table.broken.append(number)
            continue
        yield row


def _cells(lines: list[str]) -> Iterator[list[str]]:
    """Yield the cells of each line; a line that is no CSV has none."""
    try:
        yield from csv.reader(lines, strict=True)
    except csv.Error:
        return


def _value(cell: str) -> int | float | str:
    """Return the number that a cell is, or its text."""
    if _WHOLE.fullmatch(cell):
        return int(cell)
    try:
        return float(cell)
    except ValueError:
        return cell
