"""Reads and writes TensorBoard's event files: scalars, texts, images, histograms, hyperparameters.

Source: github.com/tensorflow/tensorboard, `tensorboard/compat/proto`: event, summary, tensor,
histogram; `tensorboard/plugins/hparams/plugin_data.proto`.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.interop.protobuf import (
    Value,
    WireError,
    double,
    field,
    field_of_single,
    fields,
    raw,
    signed,
    single,
    text,
    varint_at,
)
from runshelf.interop.tfrecord import Damage, frame, read_frames

VERSION = "brain.Event:2"

# TensorProto: type number -> struct format, and field number of the repeated values.
_NUMBER_TYPES = {1: ("<f", 5), 2: ("<d", 6), 3: ("<i", 7), 9: ("<q", 10)}
_STRING = 7


@final
class Pictures(NamedTuple):
    """Encoded images: PNG, JPEG or GIF."""

    encoded: list[bytes]


@final
class Settings(NamedTuple):
    """Hyperparameters."""

    values: dict[str, Any]


@final
class Unread(NamedTuple):
    """A value of a kind that is not supported."""

    kind: str


_SEVERAL = Unread("a tensor of several numbers")
Content = float | str | dict[str, float] | Pictures | Settings | Unread


class Entry(NamedTuple):
    """One value of a tag, at the writer's step and at a time in Unix seconds."""

    time: float
    step: int
    tag: str
    content: Content


def read_entries(path: Path, damage: Damage) -> Iterator[Entry]:
    """Yield the values in an event file, without those of damaged records.

    Of a record that is not an event, the values before the damage are yielded.

    Raises:
        UserFacingError: the file cannot be read.
    """
    for at, record in read_frames(path, damage):
        try:
            yield from entries_in(record)
        except WireError as error:
            damage.add(f"damaged at byte {at}: {error}")


def entries_in(record: bytes) -> Iterator[Entry]:
    """Yield the values of one event.

    Raises:
        WireError: it is not an event.
    """
    time, step, summaries = 0.0, 0, list[bytes]()
    for number, value in fields(record):
        if number == 1:
            time = double(value)
        elif number == 2:
            step = signed(value)
        elif number == 5:
            summaries.append(raw(value))
    for summary in summaries:
        for number, value in fields(summary):
            if number == 1:
                tag, content = _value(raw(value))
                yield Entry(time, step, tag, content)


def _value(message: bytes) -> tuple[str, Content]:
    """Return the tag and the content of a `Summary.Value`."""
    tag, plugin, about = "", "", b""
    body: tuple[int, Value] = (0, b"")
    for number, value in fields(message):
        if number == 1:
            tag = text(value)
        elif number == 9:
            plugin, about = _plugin(raw(value))
        elif number in (2, 4, 5, 6, 8):
            body = (number, value)
    match body[0]:
        case 2:
            content = single(body[1])
        case 4:
            content = _image(raw(body[1]))
        case 5:
            content = _histogram(raw(body[1]))
        case 8:
            content = _tensor(raw(body[1]), plugin)
        case 6:
            content = Unread("audio")
        case _:
            content = Unread("nothing")
    return tag, Settings(_hparams(about)) if plugin == "hparams" and about else content


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    """Return the plugin's name and content, from a `SummaryMetadata`."""
    name, content = "", b""
    for number, value in fields(metadata):
        if number == 1:
            for inner, item in fields(raw(value)):
                name = text(item) if inner == 1 else name
                content = raw(item) if inner == 2 else content
    return name, content


def _image(message: bytes) -> Content:
    encoded = [raw(value) for number, value in fields(message) if number == 4]
    return Pictures(encoded[:1]) if encoded else Unread("an image without pixels")


def _histogram(message: bytes) -> Content:
    """Return the summary statistics in a `HistogramProto`."""
    found = {
        number: double(value) for number, value in fields(message) if number in (1, 2, 3, 4, 5)
    }
    low, high, count, total, squares = (found.get(number, 0.0) for number in range(1, 6))
    if not count > 0:
        return {"n": count}
    mean = total / count
    variance = squares / count - mean**2
    std = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else variance
    return {"min": low, "max": high, "mean": mean, "std": std, "n": count}


def _tensor(message: bytes, plugin: str) -> Content:
    """Return the content of a `TensorProto`: a number, a text, or images."""
    found = list(fields(message))
    kind = next((signed(value) for number, value in found if number == 1), 0)
    if kind == _STRING:
        return _strings([raw(value) for number, value in found if number == 8], plugin)
    if kind not in _NUMBER_TYPES:
        return Unread(f"a tensor of type {kind}")
    form, repeated = _NUMBER_TYPES[kind]
    data = next((raw(value) for number, value in found if number == 4 and value), None)
    values = [value for number, value in found if number == repeated]
    if data is None and len(values) == 1:
        if isinstance(values[0], int):
            return float(signed(values[0]))
        if kind in (3, 9):
            number, end = varint_at(values[0], 0)
            return float(signed(number)) if end == len(values[0]) else _SEVERAL
        data = values[0]
    if data is None or len(data) != struct.calcsize(form):
        return _SEVERAL
    return float(struct.unpack(form, data)[0])


def _strings(values: Sequence[bytes], plugin: str) -> Content:
    if plugin == "images":  # the first two values are width and height
        return Pictures(list(values[2:]))
    return "\n".join(value.decode("utf-8", "replace") for value in values)


def _hparams(message: bytes) -> dict[str, Any]:
    """Return the hyperparameters in an `HParamsPluginData` that starts a session."""
    values: dict[str, Any] = {}
    for number, start in fields(message):
        for inner, entry in fields(raw(start)) if number == 3 else ():
            if inner == 1:
                pair = dict(fields(raw(entry)))
                name, value = text(pair.get(1, b"")), dict(fields(raw(pair.get(2, b""))))
                values[name] = _json_value(value)
    return values


def _json_value(value: dict[int, Value]) -> float | int | bool | str | None:
    if 2 in value:  # also of integers
        number = double(value[2])
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if 3 in value:
        return text(value[3])
    return bool(value[4]) if 4 in value else None


def version_event(time: float) -> bytes:
    """Return the first record of an event file."""
    return frame(field(1, time) + field(3, VERSION))


def scalar_event(time: float, step: int, values: Sequence[tuple[str, float]]) -> bytes:
    """Return a record of scalars, rounded to 32 bits as in TensorBoard."""
    summary = b"".join(
        field(1, field(1, tag) + field_of_single(2, number)) for tag, number in values
    )
    return frame(field(1, time) + field(2, step) + field(5, summary))


def image_event(
    time: float, step: int, tag: str, *, png: bytes, height: int, width: int, channels: int
) -> bytes:
    """Return a record with one image."""
    image = field(1, height) + field(2, width) + field(3, channels) + field(4, png)
    return frame(
        field(1, time) + field(2, step) + field(5, field(1, field(1, tag) + field(4, image)))
    )
