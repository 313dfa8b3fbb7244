"""Labels as lines of a file, each complete: whoever has it can learn from it without the run.

A file has one line for each answer in force, in the order of answering, as JSON Lines (`.jsonl`)
or as CSV (`.csv`, with a first line of these names). UTF-8. The fields, in this order:

    seed        which seed recorded the clips, and was to learn from the answer
    env_steps   what it had taken by then
    answer      left, right, tie or skip
    who         who answered
    at          when: ISO 8601, with the zone
    seconds     from the pair's being on the screen to the answer
    repeats     the query this one asks again, to measure the teacher; null, in CSV empty: none
    query       the query's number in the run
    origin      the run or file that the run has it from; null, in CSV empty: asked there
    left_clip   SHA-256 of the clip shown on the left (of its safetensors bytes), in hexadecimal
    right_clip  the same of the one on the right
    left        the clip shown on the left: safetensors, compressed by zlib, in base64
    right       the clip shown on the right

Nothing in a file is trusted: it is checked whole before anything is made of it. No JAX here.
"""

import base64
import binascii
import csv
import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, final

import numpy as np
from safetensors import SafetensorError

from backflip.core.checkpoint import from_safetensors
from backflip.preferences.labels import ANSWERS, Answer
from runshelf.errors import UsageError, did_you_mean
from runshelf.store.files import disk_errors, write_whole

LARGEST_CLIP = 128 * 2**20  # bytes it may have once it is unpacked

_LARGEST_INTEGER = 2**63 - 1  # of SQLite
_SHOWN = 60  # characters of a wrong value, in a message

# Of an array: its shape, the clip's length first, and its dtype.
Shape = tuple[tuple[int, ...], np.dtype]


@final
@dataclass(frozen=True)
class ImportedLabel:
    """An answer with its query, complete.

    Attributes:
        seed: which recorded the clips.
        env_steps: what it had taken by then.
        answer: one of `ANSWERS`.
        who: who answered.
        at: when, in ISO 8601.
        seconds: after how much looking.
        repeats: the query this one asked again, if any.
        query: its number where it was asked.
        origin: where the run had it from; None if it was asked there.
        left_clip: SHA-256 of the clip on the left.
        right_clip: SHA-256 of the clip on the right.
        packed: both clips as they are kept, compressed.
        shapes: of the arrays in each of the two clips, which are alike.
    """

    seed: int
    env_steps: int
    answer: Answer
    who: str
    at: str
    seconds: float
    repeats: int | None
    query: int
    origin: str | None
    left_clip: str
    right_clip: str
    packed: tuple[bytes, bytes] = field(repr=False)
    shapes: Mapping[str, Shape] = field(repr=False)

    @property
    def left(self) -> dict[str, np.ndarray]:
        """The arrays of the clip on the left, unpacked anew every time."""
        return from_safetensors(zlib.decompress(self.packed[0]))

    @property
    def right(self) -> dict[str, np.ndarray]:
        """The arrays of the clip on the right, unpacked anew every time."""
        return from_safetensors(zlib.decompress(self.packed[1]))


def write_lines(path: Path, labels: Sequence[ImportedLabel]) -> None:
    """Write labels to `path`, whole or not at all.

    Raises:
        UsageError: the name ends in neither `.jsonl` nor `.csv`.
        UserFacingError: the file cannot be written.
    """
    write = {".jsonl": _json_lines, ".csv": _csv_table}[_format(path)]
    write_whole(path, write([_fields(label) for label in labels]).encode())


def read_lines(path: Path) -> list[ImportedLabel]:
    """Return the labels in a file, all of them checked.

    Raises:
        UsageError: something in it is not as it should be; says in which line and column.
    """
    read = {".jsonl": _from_json_lines, ".csv": _from_csv}[_format(path)]
    return [_label(place, fields) for place, fields in read(_text(path), path)]


def _format(path: Path) -> Literal[".jsonl", ".csv"]:
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".csv"):
        raise UsageError(
            f"`{path}` ends in `{path.suffix}`: labels are kept in `.jsonl` (JSON Lines) or `.csv`"
        )
    return suffix


# Clips, as bytes.


class BadClipError(Exception):
    """What is wrong with a packed clip; a message that goes on after its name."""


class _Unpacked(NamedTuple):
    sha: str
    shapes: dict[str, Shape]


def unpack(packed: bytes) -> _Unpacked:
    """Return what is to be known of a packed clip; its arrays are let go again."""
    content = _inflated(packed)
    try:
        arrays = from_safetensors(content)
    # Its reader fails in all these ways on what only looks like safetensors.
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadClipError(f"is not safetensors ({_shown(str(error))})") from error
    _check_arrays(arrays)
    shapes = {key: (array.shape, array.dtype) for key, array in arrays.items()}
    return _Unpacked(hashlib.sha256(content).hexdigest(), dict(sorted(shapes.items())))


def _inflated(packed: bytes) -> bytes:
    """Return what zlib compressed, at most as much as a clip may have."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, LARGEST_CLIP)
    except zlib.error as error:
        raise BadClipError(f"cannot be decompressed ({error})") from error
    if len(content) == LARGEST_CLIP and not stream.eof:
        raise BadClipError(f"is larger than {LARGEST_CLIP} bytes")
    if not stream.eof or stream.unused_data:
        raise BadClipError("cannot be decompressed (it does not end where it should)")
    return content


def _check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    # An array without elements says that there is nothing to say (a clip without scenes).
    lengths = {key: array.shape[:1] for key, array in arrays.items() if array.size}
    if len(set(lengths.values())) != 1 or () in lengths.values():
        told = ", ".join(f"`{key}` {arrays[key].shape}" for key in sorted(arrays)) or "none"
        raise BadClipError(f"must have arrays of one length, has {told}")
    for key, array in arrays.items():
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise BadClipError(f"has NaN or infinity in `{key}`")


# Writing.


def _fields(label: ImportedLabel) -> dict[str, Any]:
    """Return the fields of a line, in their order."""
    left, right = (base64.b64encode(one).decode() for one in label.packed)
    values = {name: getattr(label, name) for name in _FIELDS if name not in ("left", "right")}
    return values | {"left": left, "right": right}


def _json_lines(lines: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(line, ensure_ascii=False, allow_nan=False)}\n" for line in lines)


def _csv_table(lines: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, list(_FIELDS), lineterminator="\r\n")
    table.writeheader()
    table.writerows(lines)
    return text.getvalue()


# Reading.


class _Place(NamedTuple):
    """A line of a file."""

    path: Path
    line: int

    def error(self, what: str, column: str | int | None = None) -> UsageError:
        """Return the error that says where `what` is."""
        name = f"`{column}`" if isinstance(column, str) else column
        where = "" if column is None else f", column {name}"
        return UsageError(f"`{self.path}` line {self.line}{where}: {what}")


def _text(path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`: name one that labels were exported to")
    with disk_errors(path):
        data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        place = _Place(path, before.count(b"\n") + 1)
        column = error.start - (before.rfind(b"\n") + 1) + 1
        wrong = f"byte 0x{error.object[error.start]:02x} is not UTF-8, expected text"
        raise place.error(wrong, column) from error


def _from_json_lines(text: str, path: Path) -> Iterator[tuple[_Place, dict[str, Any]]]:
    # Only line feeds end a line: text may hold what `splitlines` takes for one.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = _Place(path, number)
            yield place, _json_object(line, place)


def _json_object(line: str, place: _Place) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise place.error("is there twice, expected once", _shown(name))
        return dict(pairs)

    try:
        found: object = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise place.error(f"not JSON ({error.msg})", error.colno) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 brackets
        raise place.error("not JSON that can be read (too deep, or too long a number)") from error
    if not isinstance(found, dict):
        raise place.error(f"got `{_shown(line)}`, expected an object with {_listed(_FIELDS)}")
    return cast("dict[str, Any]", found)


def _from_csv(text: str, path: Path) -> Iterator[tuple[_Place, dict[str, Any]]]:
    names: list[str] | None = None
    with _cells_as_long_as(text):
        for place, row in _rows(text, path):
            if names is None:
                names = _header(row, place)
            else:
                yield place, _cells(names, row, place)


@contextmanager
def _cells_as_long_as(text: str) -> Generator[None, None, None]:
    """Let a cell be as long as the whole text while the block runs: clips are long."""
    usual = csv.field_size_limit()
    csv.field_size_limit(max(usual, len(text)))
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _rows(text: str, path: Path) -> Iterator[tuple[_Place, list[str]]]:
    """Return the rows that are not blank, each with the line it begins in."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        place = _Place(path, reader.line_num + 1)
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise place.error(f"not CSV ({error})") from error
        if any(cell.strip() for cell in row):
            yield place, row


def _header(row: list[str], place: _Place) -> list[str]:
    for name in row:
        if row.count(name) > 1:
            raise place.error("is there twice, expected once", _shown(name))
    _check_names(row, place)
    return row


def _cells(names: list[str], row: list[str], place: _Place) -> dict[str, Any]:
    if len(row) != len(names):
        column = len(names) + 1 if len(row) > len(names) else names[len(row)]
        raise place.error(f"the line has {len(row)} cells, expected {len(names)}", column)
    return {name: _from_cell(name, cell) for name, cell in zip(names, row, strict=True)}


def _from_cell(name: str, cell: str) -> Any:
    """Return what the cell means, as JSON would have it; as it is if it means nothing."""
    if name in ("repeats", "origin") and not cell:
        return None
    if name in ("seed", "env_steps", "repeats", "query") and re.fullmatch(r"-?[0-9]{1,20}", cell):
        return int(cell)
    if name == "seconds":
        try:
            return float(cell)
        except ValueError:
            return cell
    return cell


# Checking.


def _label(place: _Place, fields: Mapping[str, Any]) -> ImportedLabel:
    _check_names(fields, place)
    for name, (expected, is_right) in _FIELDS.items():
        if not is_right(fields[name]):
            raise place.error(_unlike(fields[name], expected, name), name)
    packed, found = zip(*(_clip(fields, side, place) for side in ("left", "right")), strict=True)
    if found[0].shapes != found[1].shapes:
        one, other = (_told(clip.shapes) for clip in found)
        raise place.error(f"has {other}, expected what `left` has: {one}", "right")
    plain = {name: fields[name] for name in _FIELDS if name not in ("left", "right")}
    plain |= {"seconds": float(plain["seconds"])}
    plain |= {"left_clip": found[0].sha, "right_clip": found[1].sha}
    return ImportedLabel(**plain, packed=packed, shapes=found[0].shapes)


def _check_names(names: Iterable[str], place: _Place) -> None:
    names = list(names)
    for name in names:
        if name not in _FIELDS:
            hint = did_you_mean(name, _FIELDS) or f", expected {_listed(_FIELDS)}"
            raise place.error(f"unknown{hint}", _shown(name))
    for name in _FIELDS:
        if name not in names:
            raise place.error(f"missing, expected {_FIELDS[name].expected}", name)


def _unlike(value: object, expected: str, name: str) -> str:
    hint = did_you_mean(value, ANSWERS) if name == "answer" and isinstance(value, str) else ""
    got = _shown(value) if isinstance(value, str) else _shown(json.dumps(value, default=str))
    return f"got `{got}`, expected {expected}{hint}"


def _clip(fields: Mapping[str, Any], side: str, place: _Place) -> tuple[bytes, _Unpacked]:
    try:
        packed = base64.b64decode(fields[side], validate=True)
    except (binascii.Error, ValueError) as error:
        raise place.error(f"not base64 ({error})", side) from error
    try:
        found = unpack(packed)
    except BadClipError as error:
        raise place.error(f"the clip {error}", side) from error
    if found.sha != fields[f"{side}_clip"].lower():
        raise place.error(
            f"got `{fields[f'{side}_clip']}`, expected `{found.sha}`, the SHA-256 of `{side}`: "
            "one of them is damaged",
            f"{side}_clip",
        )
    return packed, found


def described(shape: tuple[tuple[Any, ...], np.dtype] | None) -> str:
    """Return an array's shape and dtype in words."""
    return "missing" if shape is None else f"{shape[1]} {shape[0]}"


def _told(shapes: Mapping[str, Shape]) -> str:
    return ", ".join(f"`{key}` {described(shape)}" for key, shape in shapes.items())


def _shown(text: str) -> str:
    """Return a value for a message: on one line, not too long, nothing a terminal obeys."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and 0 <= value <= _LARGEST_INTEGER


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a character, as JSON can have it
        return False
    return True


def _is_answer(value: Any) -> bool:
    return value in ANSWERS


def _is_count_or_none(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_text_or_none(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_seconds(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= _LARGEST_INTEGER


def _is_time(value: Any) -> bool:
    try:
        return _is_text(value) and datetime.fromisoformat(cast("str", value)).tzinfo is not None
    except ValueError:
        return False


def _is_sha(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{64}", value) is not None


class _Field(NamedTuple):
    expected: str
    is_right: Callable[[Any], bool]


_COUNT = _Field("a whole number, 0 or more", _is_count)
_SHA = _Field("a SHA-256 in 64 hexadecimal digits", _is_sha)
_CLIP = _Field("a clip in base64", _is_text)
_FIELDS = {
    "seed": _COUNT,
    "env_steps": _COUNT,
    "answer": _Field(f"one of {_listed(ANSWERS)}", _is_answer),
    "who": _Field("a name", _is_text),
    "at": _Field("a time with its zone, such as 2026-01-31T12:00:00+00:00", _is_time),
    "seconds": _Field("a number of seconds, 0 or more", _is_seconds),
    "repeats": _Field("a query's number, or nothing", _is_count_or_none),
    "query": _Field("a query's number", _is_count),
    "origin": _Field("a name, or nothing", _is_text_or_none),
    "left_clip": _SHA,
    "right_clip": _SHA,
    "left": _CLIP,
    "right": _CLIP,
}
