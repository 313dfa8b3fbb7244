"""Reads and writes the wire format of protocol buffers, as far as event files need it.

Source: protobuf.dev/programming-guides/encoding. Groups, which are obsolete, are refused. There is
no recursion: a nested message stays bytes until its fields are requested.
"""

import struct
from collections.abc import Iterator

Value = int | bytes

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")


class WireError(ValueError):
    """Bytes are not a valid message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message: their number, and an integer or raw bytes.

    Raises:
        WireError: the rest of the message is invalid.
    """
    at, size = 0, len(data)
    while at < size:
        tag, at = varint_at(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint_at(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = varint_at(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise WireError(f"a field of unsupported wire type {kind}")
        if length > size - at:
            raise WireError(f"a field of {length} bytes where {size - at} are left")
        yield number, data[at : at + length]
        at += length


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at an offset, and the offset after it."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise WireError("an unfinished varint")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
    raise WireError("a varint of more than ten bytes")


def signed(value: Value) -> int:
    """Return a 64-bit integer with its sign."""
    number = value if isinstance(value, int) else 0
    return number - 2**64 if number >= 2**63 else number


def double(value: Value) -> float:
    """Return eight bytes as a double, or raise WireError."""
    return _unpacked(value, _DOUBLE)


def single(value: Value) -> float:
    """Return four bytes as a float, or raise WireError."""
    return _unpacked(value, _FLOAT)


def _unpacked(value: Value, form: struct.Struct) -> float:
    if isinstance(value, int) or len(value) != form.size:
        raise WireError(f"a value that is not {form.size} bytes")
    return form.unpack(value)[0]


def raw(value: Value) -> bytes:
    """Return a value that must be bytes, or raise WireError."""
    if isinstance(value, int):
        raise WireError("an integer instead of bytes")
    return value


def text(value: Value) -> str:
    """Return bytes as text, with invalid UTF-8 replaced, or raise WireError."""
    return raw(value).decode("utf-8", "replace")


def varint(number: int) -> bytes:
    """Return an integer encoded as a varint."""
    number &= 0xFFFFFFFFFFFFFFFF
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, value: int | float | bytes | str) -> bytes:
    """Return an encoded field: an integer, a double, bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + _DOUBLE.pack(value)
    data = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def field_of_single(number: int, value: float) -> bytes:
    """Return an encoded 32-bit float field; larger values become infinite."""
    try:
        data = _FLOAT.pack(value)
    except OverflowError:
        data = _FLOAT.pack(float("inf") if value > 0 else float("-inf"))
    return varint(number << 3 | 5) + data
