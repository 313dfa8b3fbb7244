"""The wire format of protocol buffers, as far as event files need it: fields, not schemas.

Source: protobuf.dev/programming-guides/encoding. Groups, which nobody writes any more, are refused.
Nothing here calls itself: a message within a message is bytes until somebody asks for its fields.
"""

import struct
from collections.abc import Iterator

Value = int | bytes

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")


class WireError(ValueError):
    """Bytes are no message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message: number, and a whole number or the raw bytes.

    Raises:
        WireError: it is no message; after the fields before that.
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
            raise WireError(f"a field of kind {kind}")
        if length > size - at:
            raise WireError(f"a field of {length} bytes where {size - at} are left")
        yield number, data[at : at + length]
        at += length


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length at a place, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise WireError("a number that does not end")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
    raise WireError("a number of more than ten bytes")


def signed(value: Value) -> int:
    """Return a whole number of 64 bits with its sign."""
    number = value if isinstance(value, int) else 0
    return number - 2**64 if number >= 2**63 else number


def double(value: Value) -> float:
    """Return eight bytes as a number.

    Raises:
        WireError: it is no eight bytes.
    """
    if isinstance(value, int) or len(value) != 8:
        raise WireError("no double")
    return _DOUBLE.unpack(value)[0]


def single(value: Value) -> float:
    """Return four bytes as a number.

    Raises:
        WireError: it is no four bytes.
    """
    if isinstance(value, int) or len(value) != 4:
        raise WireError("no float")
    return _FLOAT.unpack(value)[0]


def raw(value: Value) -> bytes:
    """Return bytes.

    Raises:
        WireError: it is a number.
    """
    if isinstance(value, int):
        raise WireError("a number where a message should be")
    return value


def text(value: Value) -> str:
    """Return text; what is no UTF-8 in it is shown as such.

    Raises:
        WireError: it is a number.
    """
    return raw(value).decode("utf-8", "replace")


def varint(number: int) -> bytes:
    """Return a whole number as it is written."""
    number &= 0xFFFFFFFFFFFFFFFF
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, value: int | float | bytes | str) -> bytes:
    """Return a field as it is written: a whole number, a double, bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + _DOUBLE.pack(value)
    data = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def field_of_single(number: int, value: float) -> bytes:
    """Return a field of four bytes; what is beyond such a number is infinite."""
    try:
        data = _FLOAT.pack(value)
    except OverflowError:
        data = _FLOAT.pack(float("inf") if value > 0 else float("-inf"))
    return varint(number << 3 | 5) + data
