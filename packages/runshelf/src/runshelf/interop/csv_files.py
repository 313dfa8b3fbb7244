"""Reads CSV files: `progress.csv` and `monitor.csv` of Stable-Baselines3, and any other.

A cell that is a number becomes that number exactly. An empty cell has no value.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from runshelf.errors import DamagedFile, UserFacingError
from runshelf.formatting import plural
from runshelf.received_json import parse_record
from runshelf.store.files import disk_errors

MOST_UNPACKED = 2**28  # bytes of a file that ends in .gz: a small one can hold any number of zeros
_SEPARATORS = ",;\t"
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL_COMMA = re.compile(r"-?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"-?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MOST_NAMED = 5  # line numbers in a sentence

Row = dict[str, int | float | str]


class Csv(NamedTuple):
    """The content of a CSV file.

    Attributes:
        head: the JSON of a `#{...}` line before the column names; empty without such a line.
        rows: the rows by column name, parsed while iterating; only one iteration is possible.
        broken: line numbers, from 1, of the rows left out so far.
        names: the column names; of two equal names, the last column counts.
        unended: the number of a last line without a newline, which is left out; 0 without one.
    """

    head: dict[str, Any]
    rows: Iterator[Row]
    broken: list[int]
    names: list[str]
    unended: int

    def left_out(self) -> str:
        """Return which lines were left out and why; empty if there are none."""
        lines = ", ".join(map(str, sorted(self.broken)[:MOST_NAMED]))
        said = [f"{plural(len(self.broken), 'broken line')} ({lines})"] if self.broken else []
        if self.unended:
            why = "no newline at its end, so it may be incomplete"
            said.append(f"its last line ({self.unended}), which has {why}")
        return " and ".join(said)


def read_csv(path: Path, numbers: Collection[str] = ()) -> Csv:
    """Return the rows of a CSV file, whose first line may be `#{...}`, JSON about the file.

    Cells are separated by commas, semicolons or tabs, whichever makes the most columns. Spaces
    around a cell do not count. Lines that start with `#` and empty lines are skipped, but for names
    in a comment right before numbers. Rows are left out and listed as broken if they have more
    cells than columns, or lack a number in a column of `numbers`. A last line without a newline is
    left out, too: a program may be writing it.

    Args:
        path: the file; it is unpacked if its name ends in `.gz`.
        numbers: the columns that must hold a number in each row.

    Raises:
        DamagedFile: there is no line of column names, or the file cannot be unpacked.
        UserFacingError: the file cannot be read, or is too large when unpacked.
    """
    lines = _text(path).split("\n")
    whole = lines[:-1]  # a last line without a newline may be incomplete
    start = next((at for at, line in enumerate(whole) if not _is_skipped(line)), None)
    if start is None:
        raise DamagedFile(f"`{path}` has no line of column names: it is not a training log")
    separator = _separator_of(whole[start])
    names, start = _names_at(whole, start, separator)
    if all(not isinstance(_value(name), str) for name in names):
        raise DamagedFile(f"`{path}` has no line of column names: its first line has only numbers")
    head = next((_head(line[1:]) for line in whole[:start] if line.startswith("#{")), {})
    table = Csv(head, iter(()), [], names, len(lines) if lines[-1] else 0)
    return table._replace(rows=_rows(table, whole, start, numbers, separator))


def _text(path: Path) -> str:
    with disk_errors(path):
        data = _unpacked(path) if path.suffix == ".gz" else path.read_bytes()
    text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_UNPACKED + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFile(f"`{path}` cannot be unpacked: {error}") from error
    if len(data) > MOST_UNPACKED:
        most = f"{MOST_UNPACKED // 2**20} MiB"
        raise UserFacingError(f"`{path}` holds more than {most}: unpack it with gunzip first")
    return data


def _is_skipped(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _separator_of(line: str) -> str:
    """Return the character that splits the line of names into the most columns."""
    return max(_SEPARATORS, key=lambda one: len(next(_cells(line, one), [])))


def _names_at(lines: list[str], at: int, separator: str) -> tuple[list[str], int]:
    """Return the column names, and where the rows begin.

    NumPy's `savetxt` writes the names as a comment, right before a first row of numbers only.
    """
    first = next(_cells(lines[at], separator), [])
    if at and lines[at - 1].startswith("#"):
        comment = next(_cells(lines[at - 1][1:], separator), [])
        if len(comment) == len(first) and not any(isinstance(_value(x), str) for x in first):
            return comment, at
    return first, at + 1


def _head(text: str) -> dict[str, Any]:
    try:
        return parse_record(text)
    except ValueError:
        return {}


def _rows(
    table: Csv, lines: list[str], start: int, numbers: Collection[str], separator: str
) -> Iterator[Row]:
    comma = separator == ";" and any(map(_has_decimal_comma, lines[start:]))
    for number, line in enumerate(lines[start:], start + 1):
        if _is_skipped(line):
            continue
        cells = next(_cells(line, separator), None)
        if cells is None or len(cells) > len(table.names):
            table.broken.append(number)
            continue
        # Rows written before a name was first logged have fewer cells.
        pairs = zip(table.names, cells, strict=False)
        row = {name: _value(cell, comma=comma) for name, cell in pairs if name and cell != ""}
        if not all(isinstance(row.get(name), int | float) for name in numbers):
            table.broken.append(number)
            continue
        yield row


def _cells(line: str, separator: str) -> Iterator[list[str]]:
    """Yield the cells of a line, without spaces around them; nothing if it is not CSV."""
    if '"' not in line:  # nothing is quoted: a split gives the same, and is faster
        yield list(map(str.strip, line.split(separator)))
        return
    try:
        for cells in csv.reader([line], strict=True, delimiter=separator):
            yield [cell.strip() for cell in cells]
    except csv.Error:
        return


def _has_decimal_comma(line: str) -> bool:
    cells = line.split(";") if "," in line else []
    return any(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in cells)


def _value(cell: str, *, comma: bool = False) -> int | float | str:
    """Return a cell as a number if it is one, else as text.

    If a comma is the decimal point, as in spreadsheets of many languages, then 1.000 is 1,000.
    """
    if "_" in cell or not cell.isascii():  # `1_0` is an id: only Python reads it as a number
        return cell
    if comma and _THOUSANDS.fullmatch(cell):
        cell = cell.replace(".", "")
    try:
        number = float(cell.replace(",", ".") if comma and _DECIMAL_COMMA.fullmatch(cell) else cell)
    except ValueError:
        return cell
    return int(cell) if number.is_integer() and _WHOLE.fullmatch(cell) else number
