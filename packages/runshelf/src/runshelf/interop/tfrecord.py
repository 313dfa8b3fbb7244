"""Reads and writes the record frames of TensorBoard's event files: length, its CRC, data, its CRC.

Source: github.com/tensorflow/tensorflow, `tensorflow/core/lib/io/record_writer.h`; CRC-32C of RFC
3720, rotated and shifted as there.
"""

import os
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

import numpy as np
from jaxtyping import Int, Int64, Shaped, UInt8, UInt32

from runshelf.store.files import disk_errors

LARGEST_RECORD = 2**28

# Bytes that are read at once. The first block is small, since many readers want the beginning only.
_FIRST_BLOCK, _LARGEST_BLOCK = 2**16, 2**24
_FEWEST_ROWS = 40  # that are faster together than one by one

_HEADER = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_AROUND = _HEADER.size + _CRC.size  # bytes of a record around its content
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


@cache
def _table_of_bytes() -> UInt32[np.ndarray, "256"]:
    return np.array(_TABLE, np.uint32)


@cache
def _table_of_pairs() -> UInt32[np.ndarray, "65536"]:
    """Return what two bytes do to a checksum, by their value as a little-endian number."""
    first, second = np.meshgrid(np.arange(256), np.arange(256))
    table = _table_of_bytes()
    after_one = table[first]
    return (table[(after_one ^ second.astype(np.uint32)) & 0xFF] ^ after_one >> 8).ravel()


def masked_crc(data: bytes) -> int:
    """Return CRC-32C of `data`, rotated right by 15 bits, plus a constant, modulo 2³²."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + _MASK & 0xFFFFFFFF


def masked_crcs(rows: UInt8[np.ndarray, "n length"]) -> UInt32[np.ndarray, " n"]:
    """Return `masked_crc` of each row of bytes."""
    if len(rows) < _FEWEST_ROWS:
        return np.array([masked_crc(row.tobytes()) for row in rows], np.uint32)
    whole = rows.shape[1] // 2 * 2
    pairs = np.ascontiguousarray(np.ascontiguousarray(rows[:, :whole]).view("<u2").T)
    crc, table = np.full(len(rows), 0xFFFFFFFF, np.uint32), _table_of_pairs()
    for pair in pairs:
        crc = table[(crc ^ pair) & 0xFFFF] ^ crc >> 16
    for byte in rows[:, whole:].T:
        crc = _table_of_bytes()[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + np.uint32(_MASK)


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


class Block(NamedTuple):
    """Sound records that follow each other in a file.

    Attributes:
        at: the byte of the file where `data` begins.
        data: bytes of the file.
        starts: where the content of each record begins in `data`.
        lengths: the bytes of each content.
    """

    at: int
    data: bytes
    starts: Int[np.ndarray, " records"]
    lengths: Int[np.ndarray, " records"]

    @property
    def begins(self) -> Int[np.ndarray, " records"]:
        """Where each record begins in `data`."""
        return self.starts - _HEADER.size

    def rows(self, chosen: Int[np.ndarray, " n"]) -> UInt8[np.ndarray, "n length"]:
        """Return the contents of records of equal length as rows of bytes."""
        return rows_at(self.data, self.starts[chosen], int(self.lengths[chosen[0]]))

    def by_length(self) -> list[Int[np.ndarray, " n"]]:
        """Return the records of each length, by their place in the block."""
        return groups_of(self.lengths)


def read_frames(path: Path, damage: Damage) -> Iterator[Frame]:
    """Yield the records of a file, without those that are damaged or incomplete.

    A record's length is checked against the file's size before it is read.

    Raises:
        UserFacingError: the file cannot be read.
    """
    for block in read_blocks(path, damage):
        for start, length in zip(block.starts.tolist(), block.lengths.tolist(), strict=True):
            yield Frame(block.at + start - _HEADER.size, block.data[start : start + length])


def read_blocks(path: Path, damage: Damage) -> Iterator[Block]:
    """Yield the records of a file as `read_frames`, many at once.

    Raises:
        UserFacingError: the file cannot be read.
    """
    with disk_errors(path):
        # Links are refused, and opening a pipe must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            yield from _blocks(file, os.fstat(descriptor).st_size, damage)


def _blocks(file: BinaryIO, size: int, damage: Damage) -> Iterator[Block]:
    at, wanted, search = 0, _FIRST_BLOCK, _Search(file, size)
    while at < size:
        file.seek(at)
        data = file.read(min(wanted, size - at))
        block, end = _complete(data, at)
        if end:
            yield _sound(block, damage)
            at, wanted = at + end, min(4 * wanted, _LARGEST_BLOCK)
            continue
        length = _length(data[: _HEADER.size])
        whole = _HEADER.size + (length or 0) + _CRC.size
        if length is None or length > LARGEST_RECORD or at + whole > size:
            damage.add(_wrong_length(at, length, torn=len(data) < _HEADER.size))
            # Small, or a file with many damaged headers would be read many times.
            at, wanted = search.next_header(at + 1), _PIECE
        elif len(data) < min(wanted, size - at):
            damage.add(f"torn at byte {at}, within a record")  # cut while it was read
            return
        else:
            wanted = whole


def _complete(data: bytes, at: int) -> tuple[Block, int]:
    """Return the complete records up to the first damaged header, and where the last one ends."""
    begins = _begins(data)
    lengths = np.diff(begins) - _AROUND
    block = Block(at, data, begins[:-1] + _HEADER.size, lengths)
    if not len(lengths):
        return block, 0
    headers = rows_at(data, begins[:-1], _HEADER.size)
    wrong = np.flatnonzero(masked_crcs(headers[:, :8]) != _stored(headers[:, 8:]))
    sound = int(wrong[0]) if len(wrong) else len(lengths)
    kept = block._replace(starts=block.starts[:sound], lengths=lengths[:sound])
    return kept, int(begins[sound])


def _begins(data: bytes) -> Int64[np.ndarray, " records_and_end"]:
    """Return where each complete record begins, if all lengths are right, and where the last ends.

    Most of the time of reading a file is spent here, so that the loop does nothing else.
    """
    begin, size, begins, length_at = 0, len(data), list[int](), _LENGTH.unpack_from
    append, around = begins.append, _AROUND
    try:
        while begin <= size:
            append(begin)
            begin += around + length_at(data, begin)[0]
    except struct.error:  # an incomplete length
        pass
    return np.array(begins, np.int64)


def _sound(block: Block, damage: Damage) -> Block:
    """Return the records whose checksum is right, and add the others to `damage`."""
    wrong = np.zeros(len(block.starts), bool)
    for chosen in block.by_length():
        ends = block.starts[chosen] + block.lengths[chosen]
        stored = _stored(rows_at(block.data, ends, _CRC.size))
        wrong[chosen] = masked_crcs(block.rows(chosen)) != stored
    for begin in block.begins[wrong].tolist():
        damage.add(f"damaged at byte {block.at + begin}: the checksum of a record is wrong")
    return block._replace(starts=block.starts[~wrong], lengths=block.lengths[~wrong])


def _stored(rows: UInt8[np.ndarray, "n 4"]) -> UInt32[np.ndarray, " n"]:
    return np.ascontiguousarray(rows).view("<u4")[:, 0]


def rows_at(
    data: bytes, starts: Int[np.ndarray, " n"], length: int
) -> UInt8[np.ndarray, "n length"]:
    """Return `length` bytes from each start as a row."""
    if not length:
        return np.empty((len(starts), 0), np.uint8)
    return np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), length)[starts]


def groups_of(keys: Shaped[np.ndarray, " n"]) -> list[Int[np.ndarray, " members"]]:
    """Return the places of equal keys, in their order, for each key."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(keys) else []


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
