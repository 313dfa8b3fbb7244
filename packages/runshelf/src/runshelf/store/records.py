"""Records: JSON objects, one per line, each appended by one unbuffered write.

When `write` returns, its record survives a kill of the process. A line cut short by a kill or a
full disk is skipped by readers and closed by the next writer. JSON has no NaN and no infinities:
they are stored as the strings "NaN", "Infinity" and "-Infinity" and read as floats, so a text
cannot have one of these values.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from runshelf.errors import UsageError, shown
from runshelf.received_json import DEEPEST, is_too_deep, parse_record
from runshelf.store.files import disk_errors
from runshelf.store.opening import read_whole
from runshelf.store.own_descriptor import OwnDescriptor
from runshelf.store.writing import open_lines

Record = dict[str, Any]

_TOO_DEEP = f"values nested more than {DEEPEST} levels cannot be recorded: give fewer levels"
_MOST_BITS = 1023  # every integer with so many bits is within the range of floats
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Lines(NamedTuple):
    """The content of a file of JSON lines.

    Attributes:
        records: the complete records.
        torn: the number of other lines, which are left out.
    """

    records: list[Record]
    torn: int


class LinesWriter:
    """Appends records to one file of JSON lines; one writer per file."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending, or create it.

        Raises:
            DamagedFile: it is not a regular file, or it has another name.
            UserFacingError: the file cannot be opened.
        """
        self.path = path
        self._open()

    def _open(self) -> None:
        self._file = OwnDescriptor(open_lines(self.path.parent, self.path.name))
        with disk_errors(self.path):
            self._torn = _ends_torn(self._file.number)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append `record`; once this returns, the record survives a kill of the process.

        Args:
            record: JSON values, numpy scalars, and arrays that numpy can read.

        Raises:
            UsageError: a value has another type.
            UserFacingError: the disk is full; earlier records are intact.
        """
        line = to_line(record) + b"\n"
        if not self._file.is_open():  # the program that logs has closed it
            self._open()
        if self._torn:
            line = b"\n" + line
        self._torn = True  # until the whole line is in the file
        with disk_errors(self.path):
            rest = line
            while rest:  # more than one write only when the disk fills up
                rest = rest[os.write(self._file.number, rest) :]
        self._torn = False

    def sync(self) -> None:
        """Sync the file, so that everything written so far survives a power cut."""
        with disk_errors(self.path):
            os.fsync(self._file.number)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "LinesWriter":
        """Return the writer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


def read_lines(path: Path) -> Lines:
    """Return the records of a file of JSON lines; a missing file has none.

    Raises:
        DamagedFile: it is not a regular file.
        UserFacingError: the file cannot be read.
    """
    data = read_whole(path.parent, path.name) or b""
    parsed = [parse(line) for line in data.split(b"\n") if line]
    records = [record for record in parsed if record is not None]
    return Lines(records, len(parsed) - len(records))


def parse(line: bytes) -> Record | None:
    """Return the record in `line`, or None if the line is not a complete JSON object.

    A last line without a newline is complete: no proper prefix of an object is an object.
    """
    try:
        return from_json(parse_record(line))
    except ValueError:
        return None


def to_line(record: Mapping[str, Any]) -> bytes:
    """Return `record` as one line of JSON, without the newline.

    Raises:
        UsageError: as in `to_json`.
    """
    fields = to_json(record)
    if is_too_deep(fields):
        raise UsageError(_TOO_DEEP)  # readers refuse it
    return json.dumps(fields, allow_nan=False).encode()


def to_json(value: Any) -> Any:
    """Return `value` as plain JSON values, with non-finite floats as strings.

    Raises:
        UsageError: a value is not a number, string, boolean, None, array, list or mapping of these;
            or it is nested too deeply.
    """
    try:
        return _to_json(value)
    except RecursionError:
        raise UsageError(_TOO_DEEP) from None


def _to_json(value: Any) -> Any:
    match value:
        case None | str():
            return value
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return _whole(int(value))
        case float() | np.floating():
            return _finite_or_name(float(value))
        case Mapping():
            return {_text(key): _to_json(item) for key, item in cast("Any", value).items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [_to_json(item) for item in cast("Any", value)]
        case _ if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biufUO":
            return _to_json(np.asarray(value).tolist())
        case _:
            raise UsageError(
                f"`{shown(value)[:60]}` cannot be recorded: give numbers, text or arrays"
            )


def from_json(value: Any) -> Any:
    """Return the value that `to_json` encoded, with lists in place of arrays."""
    match value:
        case str():
            return NON_FINITE.get(value, value)
        case list():
            return [from_json(item) for item in cast("list[Any]", value)]
        case dict():
            return {key: from_json(item) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _ends_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _whole(number: int) -> int | str:
    """Return an integer; infinity if it is beyond the range of floats, as readers take it."""
    if number.bit_length() <= _MOST_BITS:
        return number
    return "Infinity" if number > 0 else "-Infinity"


def _finite_or_name(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _text(key: object) -> str:
    if not isinstance(key, str):
        raise UsageError(f"key `{shown(key)[:60]}` cannot be recorded: give a string")
    return key
