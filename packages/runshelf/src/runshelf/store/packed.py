"""The file format of metric columns: a plain `.npz` with one array per key.

`numpy.load(path, allow_pickle=False)` opens it. Its arrays are:

    KEY            the values of a key: float64, int64 or bool
    KEY@rows       the rows of the records that have the key; absent if all have it
    @lines         the records that are not flat mappings of numbers, as lines of JSON, in bytes
    @lines@rows    the rows of these records
    @about         JSON: the format, the number of records, and size and SHA-256 of the `.jsonl`
"""

import hashlib
import io
import json
import math
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from runshelf.errors import DamagedFile
from runshelf.received_json import parse_record
from runshelf.store import columns_v1
from runshelf.store.columns import Batch, Column, Columns
from runshelf.store.opening import read_whole
from runshelf.store.records import to_line

FORMAT = 2

_ABOUT, _LINES, _ROWS = "@about", "@lines", "@rows"
_FEWEST = 32  # values of a key; an array costs some 250 bytes in addition to its values
# A file that exceeds this size and grows by more than this factor when decompressed was not
# written here. It is refused before any of it is decompressed.
_LARGE_BYTES = 256 * 2**20
_LARGER = 100


class Packed(NamedTuple):
    """The content of a file of columns.

    Attributes:
        batch: the records.
        bytes: the size of the `.jsonl` they were read from.
        sha256: the SHA-256 of that `.jsonl`.
    """

    batch: Batch
    bytes: int
    sha256: str


def to_npz(batch: Batch, data: bytes) -> bytes | None:
    """Return records as the bytes of a file; None if `read_npz` would refuse it for its size.

    Args:
        batch: the records.
        data: the bytes of the `.jsonl` they were read from.
    """
    kept, is_line = _choose(batch)
    members: dict[str, np.ndarray] = {}
    for key in kept:
        rows, values = batch.columns[key]
        stays = ~is_line[rows]
        members[key] = values[stays]
        if stays.sum() < batch.size:
            members[key + _ROWS] = rows[stays]
    others = batch.select(is_line)
    lines = [batch.lines.get(row) or to_line(record or {}) for row, record in others.items()]
    covers = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    about = {"format": FORMAT, "records": batch.size, "covers": covers}
    members[_LINES] = np.frombuffer(b"\n".join(lines), np.uint8)
    members[_LINES + _ROWS] = np.flatnonzero(is_line)
    members[_ABOUT] = np.array(json.dumps(about))
    file = io.BytesIO()
    save: Any = np.savez_compressed  # untyped: keys would be checked against its other parameters
    save(file, **members)
    size = sum(array.nbytes for array in members.values())
    return None if _is_bomb(size, file.tell()) else file.getvalue()


def read_npz(path: Path) -> Packed:
    """Read a file that `to_npz` made; a column is decompressed on first access.

    Raises:
        DamagedFile: the file is damaged, of a later version, or too large when decompressed.
        UserFacingError: it cannot be read.
    """
    file = _File(path)
    with _damage(path):
        about = parse_record(file.text())
        if about["format"] == columns_v1.FORMAT:
            batch = file.guarded(columns_v1.decode(about, file.member))
        elif about["format"] == FORMAT:
            batch = _decode(int(about["records"]), file)
        else:
            raise DamagedFile(
                f"`{path}` has format {about['format']}, this runshelf reads {FORMAT}: "
                "open it with the version that wrote it"
            )
        return Packed(batch, int(about["covers"]["bytes"]), str(about["covers"]["sha256"]))


def _choose(batch: Batch) -> tuple[list[str], np.ndarray]:
    """Return the keys that become arrays, and a mask of the records that stay lines."""
    kept: list[str] = []
    is_line = np.zeros(batch.size, np.bool_)
    is_line[list(batch.lines)] = True
    for key, column in batch.columns.items():
        if len(column.rows) >= _FEWEST and _is_member_name(key):
            kept.append(key)
        else:
            is_line[column.rows] = True
    return kept, is_line


def _is_member_name(key: str) -> bool:
    """Return whether a key can be the name of an array in the file.

    It must be a valid keyword of `numpy.savez_compressed`, must not clash with our own names, and
    must be printable: a zip file cannot store control characters and lone surrogates in names.
    """
    taken = key in ("file", "allow_pickle") or key.endswith((_ROWS, ".npy"))
    return key.isprintable() and len(key) < 1000 and key[:1] not in ("", "@") and not taken


@final
class _File:
    """The arrays of a `.npz` file, decompressed on access; pickles are refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        data = read_whole(path.parent, path.name) or b""
        with _damage(path):
            self._file: Any = np.load(io.BytesIO(data), allow_pickle=False)
            self.names: list[str] = self._file.files
            self.bytes = sum(one.file_size for one in self._file.zip.infolist())
            if _is_bomb(self.bytes, len(data)):
                raise ValueError("it is too large when decompressed")

    def member(self, name: str) -> np.ndarray:
        with _damage(self._path):
            self._check_size(name)
            array = self._file[name]
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "fibuU":
                raise ValueError(f"`{name}` is not an array of numbers or text")
            return array

    def _check_size(self, name: str) -> None:
        """Refuse an array that claims more values than the file has, before memory is taken."""
        member = f"{name}.npy"
        with self._file.zip.open(member) as file:
            version = np.lib.format.read_magic(file)
            read: Any = np.lib.format.read_array_header_1_0
            read = read if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            size = math.prod(shape) * dtype.itemsize
            if size != self._file.zip.getinfo(member).file_size - file.tell():
                raise ValueError(f"`{name}` has another size than it says")

    def text(self) -> str:
        """Return the file's description; files of format 1 store it as bytes."""
        if _ABOUT in self.names:
            return str(self.member(_ABOUT))
        return self.member("about").tobytes().decode()

    def guarded(self, batch: Batch) -> Batch:
        """Return a batch whose columns raise `DamagedFile` if they cannot be decoded."""

        def load(key: str) -> Column:
            with _damage(self._path):
                return batch.columns[key]

        return Batch(batch.size, Columns(batch.columns, load), batch.lines)

    def column(self, name: str, size: int) -> Column:
        with _damage(self._path):
            values = self.member(name)
            if name + _ROWS not in self.names:
                rows = np.arange(size)
            else:
                rows = self.member(name + _ROWS).astype(np.int64)
            inside = not len(rows) or (rows[0] >= 0 and rows[-1] < size)
            is_column = rows.shape == values.shape and values.dtype.kind in "fib"
            if not is_column or not inside or (np.diff(rows) <= 0).any():
                raise ValueError(f"`{name}` and its rows are inconsistent")
            return Column(rows, values)


def _decode(size: int, file: _File) -> Batch:
    if not 0 <= size <= file.bytes:  # a record takes at least one byte
        raise ValueError(f"it cannot hold {size} records")
    keys = [name for name in file.names if name[0] != "@" and not name.endswith(_ROWS)]
    text, rows = file.member(_LINES).tobytes(), file.member(_LINES + _ROWS).tolist()
    lines = text.split(b"\n") if text else []
    if not 0 <= min(rows, default=0) <= max(rows, default=-1) + 1 <= size:
        raise ValueError("its lines have invalid rows")
    return Batch(
        size,
        Columns(keys, lambda key: file.column(key, size)),
        dict(zip(rows, lines, strict=True)),
    )


def _is_bomb(size: int, packed: int) -> bool:
    return size > _LARGE_BYTES and size > _LARGER * packed


@contextmanager
def _damage(path: Path) -> Generator[None, None, None]:
    """Turn every error inside the block into `DamagedFile`: damaged zip files raise many kinds."""
    try:
        yield
    except DamagedFile:
        raise
    except Exception as error:
        raise DamagedFile(f"`{path}` is damaged ({error}): restore it from a copy") from error
