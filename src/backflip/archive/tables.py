"""Lines of metric records as columns: tables in memory, and the same in a `.npz` file.

Records with the same keys, in the same order and of the same types, make one table; a line that is
no flat record of numbers, or no record at all, stays a line. Which of them came when is kept, so
that lines become columns and records again without loss.

A file is an ordinary `.npz` of byte arrays. A column is written as the eight bytes of each of its
values, all first bytes, then all second bytes, and so on, since neighbours are alike in the high
ones. Whole numbers are written as differences; so are fractions that are a whole number of
thousandths or millionths, bit for bit, as times are.
"""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float64, Int64, Shaped, UInt8

from backflip.archive.checkpoint import disk_errors
from backflip.archive.metrics import from_json, to_json
from backflip.core.errors import DamagedFile

FORMAT = 1
Record = dict[str, Any]
Shape = tuple[tuple[str, ...], str]

_KINDS: Mapping[type, str] = {float: "f", int: "i", bool: "b"}
_DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "b": np.dtype(np.bool_)}
_BIGGEST = 2**63
_CHUNK = 4096  # rows that are kept as Python objects before they become arrays
_MEMBER = 4096  # values in one member of the file, at least: a member costs 250 bytes
_FEWEST = 8  # rows that are worth a table of their own
_MOST_TABLES = 1000
_SCALES = (1.0, 1e3, 1e6)
# What would swell so on reading was not written here: refused before anything is inflated.
_LARGE_BYTES = 256 * 2**20
_SWELLS = 100
_DECODE = json.JSONDecoder().decode


@final
class Table:
    """Records of one shape, by column."""

    def __init__(self, shape: Shape, rows: int, load: Callable[[int], np.ndarray]) -> None:
        """Keep what is needed to load a column.

        Args:
            shape: the keys, and for each of them the kind of its values: `f`loat, `i`nt or `b`ool.
            rows: how many records.
            load: returns the column of a number.
        """
        self.keys, self.kinds = shape
        self.rows = rows
        self._load = load
        self._loaded: dict[int, np.ndarray] = {}
        # Looked up, as there may be as many keys as there are metrics.
        self._index = {key: number for number, key in enumerate(self.keys)}

    def __contains__(self, key: str) -> bool:
        """Return whether there is a column of this key."""
        return key in self._index

    @property
    def shape(self) -> Shape:
        """The keys and their kinds: two tables of the same shape are one."""
        return self.keys, self.kinds

    def column(self, key: str) -> Shaped[np.ndarray, " rows"]:
        """Return the values under `key`, oldest first."""
        index = self._index[key]
        if index not in self._loaded:
            self._loaded[index] = self._load(index)
        return self._loaded[index]

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        columns = [self.column(key).tolist() for key in self.keys]
        return (dict(zip(self.keys, row, strict=True)) for row in zip(*columns, strict=True))


@final
class Batch:
    """Lines, most of them in tables."""

    def __init__(self, order: np.ndarray, tables: Sequence[Table], lines: Sequence[bytes]) -> None:
        """Keep the parts.

        Args:
            order: for each line, 0 if it stayed a line, else one more than its table's index.
            tables: the tables.
            lines: what stayed lines: other records, and what is no record.
        """
        self.order, self.tables, self.lines = order, tables, lines

    @cached_property
    def others(self) -> list[Record | None]:
        """The records that stayed lines; None for a line that is no record."""
        return [parse(line) for line in self.lines]

    def positions(self, table: int) -> Int64[np.ndarray, " rows"]:
        """Return where among all lines those of a table stand; of -1, those that stayed lines."""
        return self._positions[table + 1]

    @cached_property
    def _positions(self) -> list[np.ndarray]:
        """Of every table at once: there may be as many as lines."""
        counts = np.bincount(self.order, minlength=len(self.tables) + 1)
        return np.split(np.argsort(self.order, kind="stable"), np.cumsum(counts)[:-1])

    def records(self) -> list[Record | None]:
        """Return everything in order; None for a line that is no record."""
        sources = [iter(self.others), *(table.records() for table in self.tables)]
        return [next(sources[source]) for source in self.order.tolist()]


class Contents(NamedTuple):
    """What a file held.

    Attributes:
        batch: the lines.
        covers: what the writer of the file noted beside them.
    """

    batch: Batch
    covers: Mapping[str, Any]


def parse(line: bytes) -> Record | None:
    """Return the record in `line`, or None if it is not whole.

    A line that lacks nothing but its newline is whole: no proper prefix of an object is one.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return from_json(record) if isinstance(record, dict) else None


def tabulate(lines: Sequence[bytes]) -> Batch:
    """Return lines of JSON, without their newlines, as tables as far as possible."""
    growing: dict[Shape, _Growing] = {}
    order: list[int] = []
    left: list[bytes] = []
    for line, record in zip(lines, _parsed(lines), strict=True):
        shape = _shape(record) if record else None
        if not record or not shape:
            order.append(0)
            left.append(line)
            continue
        table = growing.get(shape)
        if table is None:
            table = growing[shape] = _Growing(shape, len(growing) + 1)
        order.append(table.number)
        table.add(tuple(record.values()))
    return Batch(np.array(order, np.uint32), [table.done() for table in growing.values()], left)


def join(first: Batch, second: Batch) -> Batch:
    """Return the lines of two batches, one after the other."""
    index = {table.shape: number for number, table in enumerate(first.tables)}
    tables = list(first.tables)
    renumbered = np.zeros(len(second.tables) + 1, np.uint32)
    for number, table in enumerate(second.tables):
        at = index.get(table.shape)
        renumbered[number + 1] = (len(tables) if at is None else at) + 1
        if at is None:
            tables.append(table)
        else:
            tables[at] = _appended(tables[at], table)
    order = np.concatenate([first.order, renumbered[second.order]])
    return Batch(order, tables, [*first.lines, *second.lines])


def to_npz(batch: Batch, covers: Mapping[str, Any]) -> bytes | None:
    """Return a batch as the bytes of a file; None if `read_npz` would refuse it for its size."""
    batch = _without_small_tables(batch)
    widest = np.min_scalar_type(len(batch.tables))
    members = {
        "order": batch.order.astype(widest).view(np.uint8),
        "lines": np.frombuffer(b"\n".join(batch.lines), np.uint8),
    }
    described: list[dict[str, Any]] = []
    for number, table in enumerate(batch.tables):
        encoded = [_encoded(table.column(key)) for key in table.keys]
        for name, columns in _members(number, [planes for planes, _ in encoded], table.rows):
            members[name] = columns
        scales = [scale for _, scale in encoded]
        described.append(
            {"keys": table.keys, "kinds": table.kinds, "rows": table.rows, "scales": scales}
        )
    about = {
        **{"format": FORMAT, "order": widest.itemsize, "lines": len(batch.lines)},
        **{"tables": described, "covers": covers},
    }
    members["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    data = _zipped(members)
    swollen = sum(array.nbytes for array in members.values())
    return None if _is_bomb(swollen, len(data)) else data


def read_npz(path: Path) -> Contents:
    """Return what `to_npz` wrote to `path`; columns are read when they are asked for.

    Raises:
        DamagedFile: it is not such a file, or it would swell beyond measure.
        BackflipError: it cannot be read.
    """
    with disk_errors(path):
        data = path.read_bytes()
    members = _Members(path, data)
    try:
        about = json.loads(members["about"].tobytes())
        if about["format"] != FORMAT:
            raise DamagedFile(
                f"`{path}` has format {about['format']}, this backflip reads {FORMAT}: "
                "use the one it is of"
            )
        text = members["lines"].tobytes()
        lines = text.split(b"\n") if about["lines"] else []
        order = members["order"].view(f"u{about['order']}").astype(np.uint32)
        tables = [_stored(members, n, table) for n, table in enumerate(about["tables"])]
        batch = Batch(order, tables, lines)
        counts = [len(lines), *(table.rows for table in tables)]
        largest = int(order.max(initial=0))
        if largest >= len(counts) or np.bincount(order, minlength=len(counts)).tolist() != counts:
            raise ValueError("its parts do not agree")
        return Contents(batch, about["covers"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, error) from error


@final
class _Growing:
    """A table that rows are added to."""

    def __init__(self, shape: Shape, number: int) -> None:
        self.number = number
        self._shape = shape
        self._rows: list[tuple[Any, ...]] = []
        self._chunks: list[list[np.ndarray]] = []
        self._count = 0

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        self._count += 1
        if len(self._rows) == _CHUNK:
            self._pack()

    def done(self) -> Table:
        self._pack()
        return Table(self._shape, self._count, self._column)

    def _pack(self) -> None:
        if self._rows:
            columns = zip(self._shape[1], zip(*self._rows, strict=True), strict=True)
            self._chunks.append([np.array(values, _DTYPES[kind]) for kind, values in columns])
        self._rows = []

    def _column(self, index: int) -> np.ndarray:
        return np.concatenate([chunk[index] for chunk in self._chunks])


def _parsed(lines: Sequence[bytes]) -> Iterator[Record | None]:
    """Yield what each line holds, non-finite numbers still as words if there are words."""
    for line in lines:
        try:
            record = _DECODE(line.decode())
        except (ValueError, RecursionError):
            yield parse(line)  # slower, and the judge of what a record is
        else:
            yield record if type(record) is dict else None


def _shape(record: Record) -> Shape | None:
    """Return the shape of a flat record of numbers, its non-finite ones made numbers; else None."""
    if str in map(type, record.values()):
        record |= from_json(record)
    try:
        kinds = "".join([_KINDS[type(value)] for value in record.values()])
    except KeyError:
        return None
    if "i" in kinds and not all(
        -_BIGGEST <= value < _BIGGEST for value in record.values() if type(value) is int
    ):
        return None
    return tuple(record), kinds


def _appended(first: Table, second: Table) -> Table:
    def load(index: int) -> np.ndarray:
        key = first.keys[index]
        return np.concatenate([first.column(key), second.column(key)])

    return Table(first.shape, first.rows + second.rows, load)


def _without_small_tables(batch: Batch) -> Batch:
    """Return the batch with lines in place of tables that would cost more than they save."""
    by_size = sorted(range(len(batch.tables)), key=lambda n: -batch.tables[n].rows)
    kept = [n for n in sorted(by_size[:_MOST_TABLES]) if batch.tables[n].rows >= _FEWEST]
    if len(kept) == len(batch.tables):
        return batch
    sources: list[Iterator[bytes]] = [iter(batch.lines), *map(_lines_of, batch.tables)]
    renumbered = np.zeros(len(batch.tables) + 1, np.uint32)
    renumbered[[n + 1 for n in kept]] = np.arange(1, len(kept) + 1)
    left = batch.order[renumbered[batch.order] == 0]
    lines = [next(sources[source]) for source in left.tolist()]
    return Batch(renumbered[batch.order], [batch.tables[n] for n in kept], lines)


def _lines_of(table: Table) -> Iterator[bytes]:
    return (json.dumps(to_json(record), allow_nan=False).encode() for record in table.records())


def _encoded(
    column: Shaped[np.ndarray, " rows"],
) -> tuple[UInt8[np.ndarray, "8 rows"], float]:
    """Return a column as byte planes, and the scale of its whole numbers; 0 if it is fractions."""
    scale = _scale(column) if column.dtype == np.float64 else 1.0
    if not scale:
        return _planes(column), 0.0
    numbers = np.rint(column * scale) if column.dtype == np.float64 else column
    return _planes(np.diff(numbers.astype(np.int64), prepend=np.int64(0))), scale


def _scale(column: Float64[np.ndarray, " rows"]) -> float:
    """Return by what the column has to be multiplied to be whole numbers; 0 if nothing does it.

    Dividing by it must give back every bit, which no NaN, infinity or negative zero survives.
    """
    if not np.abs(column).max(initial=0.0) < 2.0**43:
        return 0.0
    for scale in _SCALES:
        if np.array_equal(_unscaled(np.rint(column * scale), scale), column.view(np.int64)):
            return scale
    return 0.0


def _unscaled(numbers: np.ndarray, scale: float) -> Int64[np.ndarray, " rows"]:
    return (numbers.astype(np.int64) / scale).view(np.int64)


def _planes(column: Shaped[np.ndarray, " rows"]) -> UInt8[np.ndarray, "8 rows"]:
    little = np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<")))
    return little.view(np.uint8).reshape(-1, 8).T


def _decoded(planes: UInt8[np.ndarray, "8 rows"], kind: str, scale: float) -> np.ndarray:
    values = np.ascontiguousarray(planes.T).reshape(-1)
    if not scale:
        return values.view("<f8")
    numbers = np.cumsum(values.view("<i8"), dtype=np.int64)
    return numbers / scale if kind == "f" else numbers.astype(_DTYPES[kind])


def _width(rows: int) -> int:
    """Return how many columns share a member of the file."""
    return max(1, _MEMBER // max(rows, 1))


def _members(
    number: int, columns: Sequence[np.ndarray], rows: int
) -> Iterable[tuple[str, np.ndarray]]:
    width = _width(rows)
    for first in range(0, len(columns), width):
        yield f"{number}/{first // width}", np.stack(columns[first : first + width])


def _stored(members: "_Members", number: int, about: Mapping[str, Any]) -> Table:
    """Return a table of a file, whose columns are read when asked for."""
    keys, kinds, rows, scales = (about[name] for name in ("keys", "kinds", "rows", "scales"))
    if not 0 < len(keys) == len(kinds) == len(scales) or set(kinds) - set(_DTYPES):
        raise ValueError("a table is not described")
    width = _width(rows)

    def load(index: int) -> np.ndarray:
        part, at = divmod(index, width)
        columns = min(width, len(keys) - part * width)
        try:
            planes = members[f"{number}/{part}"].reshape(columns, 8, rows)[at]
            return _decoded(planes, kinds[index], scales[index])
        except (ValueError, TypeError) as error:
            raise _damaged(members.path, error) from error

    return Table((tuple(map(str, keys)), str(kinds)), int(rows), load)


def _zipped(members: Mapping[str, np.ndarray]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            # A date of its own would make two files of the same records differ.
            about = zipfile.ZipInfo(f"{name}.npy")
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, member.getvalue())
    return data.getvalue()


@final
class _Members:
    """The byte arrays in a `.npz` file, read one at a time and never as anything but bytes."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise _damaged(path, error) from error
        if _is_bomb(sum(member.file_size for member in self._archive.infolist()), len(data)):
            raise _damaged(path, ValueError("it would swell beyond measure"))

    def __getitem__(self, name: str) -> UInt8[np.ndarray, " bytes"]:
        """Return the bytes of one member, whatever its shape."""
        try:
            data = self._archive.read(f"{name}.npy")
            return _bytes_of(data)
        except Exception as error:
            # zipfile and zlib raise half a dozen kinds for damage; each is one here.
            raise _damaged(self.path, error) from error


def _bytes_of(data: bytes) -> UInt8[np.ndarray, " bytes"]:
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an unknown version of its arrays")
    _, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype != np.uint8:
        raise ValueError(f"an array of {dtype}")
    return np.frombuffer(data, np.uint8, offset=file.tell())


def _is_bomb(swollen: int, packed: int) -> bool:
    return swollen > _LARGE_BYTES and swollen > _SWELLS * packed


def _damaged(path: Path, error: Exception) -> DamagedFile:
    if isinstance(error, DamagedFile):
        return error
    return DamagedFile(f"`{path}` is damaged ({error}): restore it from a copy")
