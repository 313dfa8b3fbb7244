"""Reads and writes the record frames of TensorBoard's event files: length, its CRC, data, its CRC.

Source: github.com/tensorflow/tensorflow, `tensorflow/core/lib/io/record_writer.h`; CRC-32C of RFC
3720, rotated and shifted as there.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

from runshelf.store.files import disk_errors

LARGEST_RECORD = 2**28

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_HIGH_BYTES = bytes(4)
# Of one file, in the search for the next sound record.
_PIECE, _MOST_PIECES, _MOST_CHECKSUMS = 4096, 2**14, 100_000
_MASK = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table: list[int] = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """Return CRC-32C of `data`, rotated right by 15 bits, plus a constant, modulo 2³²."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + _MASK & 0xFFFFFFFF


def frame(data: bytes) -> bytes:
    """Return `data` as a framed record."""
    length = struct.pack("<Q", len(data))
    return b"".join((length, _CRC.pack(masked_crc(length)), data, _CRC.pack(masked_crc(data))))


@final
class Damage:
    """Damaged records that were skipped.

    Attributes:
        count: how many there were; a damaged length may hide several.
        first: what is wrong with the first.
    """

    def __init__(self) -> None:
        self.count, self.first = 0, ""

    def add(self, what: str) -> None:
        """Add a damaged record."""
        self.count, self.first = self.count + 1, self.first or what


class Frame(NamedTuple):
    """A record, and the byte of the file where it begins."""

    at: int
    data: bytes


def read_frames(path: Path, damage: Damage) -> Iterator[Frame]:
    """Yield the records of a file, without those that are damaged or incomplete.

    A record's length is checked against the file's size before it is read.

    Raises:
        UserFacingError: the file cannot be read.
    """
    with disk_errors(path):
        # Links are refused, and opening a pipe must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            yield from _frames(file, os.fstat(descriptor).st_size, damage)


def _frames(file: BinaryIO, size: int, damage: Damage) -> Iterator[Frame]:
    at, search = 0, _Search(file, size)
    while at < size:
        file.seek(at)
        header = file.read(_HEADER.size)
        length = _length(header)
        end = at + _HEADER.size + (length or 0) + _CRC.size
        if length is None or length > LARGEST_RECORD or end > size:
            damage.add(_wrong_length(at, length, torn=len(header) < _HEADER.size))
            at = search.next_header(at + 1)
            continue
        data = file.read(length + _CRC.size)
        if len(data) < length + _CRC.size:
            damage.add(f"torn at byte {at}, within a record")  # cut while it was read
            return
        if masked_crc(data[:length]) == _CRC.unpack(data[length:])[0]:
            yield Frame(at, data[:length])
        else:
            damage.add(f"damaged at byte {at}: the checksum of a record is wrong")
        at = end


def _length(header: bytes) -> int | None:
    """Return the length of a record from its header; None if that is incomplete or damaged."""
    if len(header) < _HEADER.size:
        return None
    length, crc = _HEADER.unpack(header)
    return length if masked_crc(header[:8]) == crc else None


def _wrong_length(at: int, length: int | None, *, torn: bool) -> str:
    if torn:
        return f"torn at byte {at}, in the length of a record"
    if length is None:
        return f"damaged at byte {at}: the checksum of a length is wrong"
    if length > LARGEST_RECORD:
        return f"damaged at byte {at}: a record of {length} bytes exceeds the limit"
    return f"torn at byte {at}, within a record"


@final
class _Search:
    """Finds sound headers after damaged ones: in all of a file, in at most a second or two."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._pieces, self._checksums = _MOST_PIECES, _MOST_CHECKSUMS

    def next_header(self, at: int) -> int:
        """Return where the next sound header begins; the file's size if none is found."""
        while at < self._size and self._pieces > 0:
            self._pieces -= 1
            self._file.seek(at)
            found = self._in_piece(self._file.read(_PIECE + _HEADER.size - 1), at)
            if found is not None:
                return found
            at += _PIECE
        return self._size

    def _in_piece(self, piece: bytes, start: int) -> int | None:
        # The upper half of each length below the limit is zero.
        high = piece.find(_HIGH_BYTES, 4)
        while high >= 0 and self._checksums > 0:
            self._checksums -= 1
            begin = high - 4
            length = _length(piece[begin : begin + _HEADER.size])
            if length is not None and length <= self._size - start - begin:
                return start + begin
            high = piece.find(_HIGH_BYTES, high + 1)
        return None
