"""Reads and writes the record frames of TensorBoard's event files: length, its CRC, data, its CRC.

Source: github.com/tensorflow/tensorflow, `tensorflow/core/lib/io/record_writer.h`; CRC-32C of RFC
3720, rotated and shifted as there.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import final

from runshelf.store.files import disk_errors

LARGEST_RECORD = 2**28

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
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
class TornFile(Exception):
    """The rest of a file is not a complete record; the message says where and why."""


def read_frames(path: Path) -> Iterator[bytes]:
    """Yield the records of a file, up to the first incomplete or damaged one.

    A record's length is checked against the file's size before it is read.

    Raises:
        TornFile: after the last complete record, if more data follows it.
        UserFacingError: the file cannot be read.
    """
    with disk_errors(path):
        # Links are refused, and opening a pipe must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            at = 0
            while at < size:
                header = file.read(_HEADER.size)
                if len(header) < _HEADER.size:
                    raise TornFile(f"torn at byte {at}, in the length of a record")
                length, crc = _HEADER.unpack(header)
                if masked_crc(header[:8]) != crc:
                    raise TornFile(f"damaged at byte {at}: the checksum of a length is wrong")
                if length > LARGEST_RECORD:
                    raise TornFile(f"a record of {length} bytes at byte {at} exceeds the limit")
                end = at + _HEADER.size + length + _CRC.size
                data = file.read(length + _CRC.size) if end <= size else b""
                if len(data) < length + _CRC.size:
                    raise TornFile(f"torn at byte {at}, within a record")
                if masked_crc(data[:length]) != _CRC.unpack(data[length:])[0]:
                    raise TornFile(f"damaged at byte {at}: the checksum of a record is wrong")
                yield data[:length]
                at = end
