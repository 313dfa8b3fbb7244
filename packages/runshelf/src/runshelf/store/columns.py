"""Metric records in memory: one column of numbers per key.

A column holds the values of a key and their rows. The row of a record is its position, counted from
0. Records that are not flat mappings of numbers stay lines of JSON.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from runshelf.received_json import may_have_surrogates
from runshelf.store.records import NON_FINITE, Record, parse

EXACT = 2**53  # integers up to this are exact as float64

_DTYPES: Mapping[type, type] = {float: np.float64, int: np.int64, bool: np.bool_}
_CHUNK = 4096  # lines that are held as Python objects at a time
_DECODE = json.JSONDecoder().decode


class Column(NamedTuple):
    """The values of one key, in the order of their rows.

    Attributes:
        rows: the rows of the records that have the key.
        values: float64, int64 or bool; float64 if the records mix these types.
    """

    rows: Int64[np.ndarray, " n"]
    values: Shaped[np.ndarray, " n"]

    def at(
        self, rows: Int64[np.ndarray, " m"]
    ) -> tuple[Shaped[np.ndarray, " m"], Bool[np.ndarray, " m"]]:
        """Return the values in the given rows, and a mask of the rows that have a value."""
        if not len(self.rows):
            return np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
        index = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return self.values[index], self.rows[index] == rows


@final
class Columns(Mapping[str, Column]):
    """Columns by key, each loaded on first access."""

    def __init__(self, keys: Iterable[str], load: Callable[[str], Column]) -> None:
        """Set the keys, in order, and a function that returns the column of a key."""
        self._keys = dict.fromkeys(keys)
        self._load = cache(load)

    def __getitem__(self, key: str) -> Column:
        """Return the column of `key`."""
        if key not in self._keys:
            raise KeyError(key)
        return self._load(key)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        """Return whether there is a column of `key`, without loading it."""
        return key in self._keys

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._keys)


@final
class Batch:
    """Metric records, most of them in columns."""

    def __init__(
        self, size: int, columns: Mapping[str, Column], lines: Mapping[int, bytes]
    ) -> None:
        """Set the number of records, their columns, and the lines of other records by row."""
        self.size, self.columns, self.lines = size, columns, lines

    @cached_property
    def others(self) -> dict[int, Record | None]:
        """The records of the lines, by row; None for a line that is not a record."""
        return {row: None if _is_cut(line) else parse(line) for row, line in self.lines.items()}

    def records(self) -> list[Record | None]:
        """Return all records in order; None for a line that is not a record."""
        return list(self.select(np.ones(self.size, np.bool_)).values())

    def select(self, chosen: Bool[np.ndarray, " size"]) -> dict[int, Record | None]:
        """Return the chosen records by row, in order; None for a line that is not a record."""
        found: dict[int, Any] = {row: {} for row in np.flatnonzero(chosen).tolist()}
        for key, (rows, values) in self.columns.items():
            at = chosen[rows]
            for row, value in zip(rows[at].tolist(), values[at].tolist(), strict=True):
                found[row][key] = value
        return found | {row: record for row, record in self.others.items() if chosen[row]}

    @cached_property
    def numbers(self) -> Mapping[str, Column]:
        """The columns, together with the numeric fields of the records that stay lines."""
        numeric = {row: _numbers_of(record or {}) for row, record in self.others.items()}
        return merge([(0, self.columns), *((0, piece) for piece in _pieces(numeric)[0])])


def tabulate(lines: Sequence[bytes]) -> Batch:
    """Convert lines of JSON, without newlines, into columns where possible."""
    starts = range(0, len(lines), _CHUNK)
    return concatenate([_tabulate(lines[start : start + _CHUNK]) for start in starts])


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Return one batch with the records of several batches in order."""
    *starts, size = itertools.accumulate((batch.size for batch in batches), initial=0)
    placed = list(zip(starts, batches, strict=True))
    lines = {start + row: line for start, batch in placed for row, line in batch.lines.items()}
    return Batch(size, merge([(start, batch.columns) for start, batch in placed]), lines)


def merge(pieces: Sequence[tuple[int, Mapping[str, Column]]]) -> Mapping[str, Column]:
    """Join columns of several pieces; each piece comes with an offset for its rows."""
    if len(pieces) == 1 and pieces[0][0] == 0:
        return pieces[0][1]
    having: dict[str, list[tuple[int, Mapping[str, Column]]]] = {}
    for start, piece in pieces:
        for key in piece:
            having.setdefault(key, []).append((start, piece))

    def load(key: str) -> Column:
        columns = [(start, piece[key]) for start, piece in having[key]]
        rows = np.concatenate([start + column.rows for start, column in columns])
        return in_order(rows, np.concatenate([column.values for _, column in columns]))

    return Columns(having, load)


def in_order(rows: Int64[np.ndarray, " n"], values: Shaped[np.ndarray, " n"]) -> Column:
    """Return a column sorted by row."""
    if (np.diff(rows) > 0).all():
        return Column(rows, values)
    rank = np.argsort(rows)
    return Column(rows[rank], values[rank])


def _tabulate(lines: Sequence[bytes]) -> Batch:
    pieces, left = _pieces({row: _flat(line) for row, line in enumerate(lines)})
    columns = merge([(0, piece) for piece in pieces])
    return Batch(len(lines), columns, {row: lines[row] for row in left})


def _pieces(records: Mapping[int, Record | None]) -> tuple[list[dict[str, Column]], list[int]]:
    """Return columns of the flat records, one piece per set of keys and types; and other rows."""
    alike: dict[Any, dict[int, Record]] = {}
    left: list[int] = []
    for row, record in records.items():
        if record:
            shape = (tuple(record), tuple(map(type, record.values())))
            alike.setdefault(shape, {})[row] = record
        else:
            left.append(row)
    pieces: list[dict[str, Column]] = []
    for (keys, kinds), group in alike.items():
        arrays = _arrays(kinds, list(group.values()))
        if arrays is None:
            left += group
        else:
            rows = np.array(list(group), np.int64)
            pieces.append({key: Column(rows, a) for key, a in zip(keys, arrays, strict=True)})
    return pieces, left


def _arrays(kinds: Sequence[type], group: Sequence[Record]) -> list[np.ndarray] | None:
    """Return an array per key for records of one shape; None if they cannot become columns."""
    if not _DTYPES.keys() >= set(kinds):
        return None
    values = zip(*(record.values() for record in group), strict=True)
    arrays: list[np.ndarray] = []
    for kind, of_key in zip(kinds, values, strict=True):
        if kind is int and not -EXACT <= min(of_key) <= max(of_key) <= EXACT:
            return None
        arrays.append(np.array(of_key, _DTYPES[kind]))
    return arrays


def _flat(line: bytes) -> Record | None:
    """Return the record in a line, with non-finite numbers decoded; None to keep the line.

    Faster than `parse`, which decides what a record is if a line is kept.
    """
    if _is_cut(line):
        return None
    try:
        record = _DECODE(text := line.decode())
    except (ValueError, RecursionError):
        return None
    if type(record) is not dict or may_have_surrogates(text):
        return None
    if str in map(type, record.values()):
        return {k: NON_FINITE.get(v, v) if type(v) is str else v for k, v in record.items()}
    return record


def _is_cut(line: bytes) -> bool:
    """Return whether a line has no end, as after a kill. Parsing it is much slower than this."""
    return not line.rstrip().endswith(b"}")


def _numbers_of(record: Record) -> Record:
    """Return the numeric fields of a record; large integers as floats."""
    numbers = ((key, value) for key, value in record.items() if isinstance(value, int | float))
    return {key: n if -EXACT <= n <= EXACT else float(n) for key, n in numbers}
