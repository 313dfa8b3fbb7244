"""Reads files of metric columns in format 1, which `compact` replaces when it adds records.

Records with the same keys and types form a table. A column holds the eight bytes of each value:
all first bytes, then all second bytes, and so on. Integers, and fractions that are multiples of
1 / scale, are stored as differences.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from runshelf.store.columns import Batch, Column, Columns, merge

FORMAT = 1
_VALUES_PER_MEMBER = 4096  # a minimum: columns of short tables share one array of the file
_DTYPES = {"f": "float64", "i": "int64", "b": "bool"}


def decode(about: Mapping[str, Any], member: Callable[[str], np.ndarray]) -> Batch:
    """Return the records of a file.

    Args:
        about: the file's description.
        member: returns an array of the file by name.

    Raises:
        ValueError: the parts of the file are inconsistent.
    """
    text, tables = member("lines").tobytes(), about["tables"]
    lines = text.split(b"\n") if text else []
    source = np.frombuffer(member("order").tobytes(), f"<u{about['order']}")
    counts = [len(lines), *(table["rows"] for table in tables)]
    if source.max(initial=0) >= len(counts):
        raise ValueError("its parts are inconsistent")
    if np.bincount(source, minlength=len(counts)).tolist() != counts:
        raise ValueError("its parts are inconsistent")
    order = np.argsort(source, kind="stable")  # one sort for all tables: there may be many
    rest, *rows = np.split(order, np.cumsum(counts)[:-1])
    pieces = [
        (0, _columns(number, table, at, member))
        for number, (table, at) in enumerate(zip(tables, rows, strict=True))
    ]
    return Batch(len(source), merge(pieces), dict(zip(rest.tolist(), lines, strict=True)))


def _columns(
    number: int, table: Mapping[str, Any], rows: np.ndarray, member: Callable[[str], np.ndarray]
) -> Columns:
    width = max(1, _VALUES_PER_MEMBER // len(rows))
    of_key = dict(
        zip(table["keys"], zip(table["kinds"], table["scales"], strict=True), strict=True)
    )

    def load(key: str) -> Column:
        part, at = divmod(table["keys"].index(key), width)
        planes = member(f"{number}/{part}").reshape(-1, 8, len(rows))[at]
        values = np.frombuffer(planes.T.tobytes(), np.int64)
        kind, scale = of_key[key]
        if not scale:
            return Column(rows, values.view(np.float64))
        numbers = np.cumsum(values)
        return Column(rows, numbers / scale if kind == "f" else numbers.astype(_DTYPES[kind]))

    return Columns(of_key, load)
