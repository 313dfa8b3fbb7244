"""Files of labels. Each line is complete: it has both clips, so the run is not needed. No JAX.

A file has one line for each answer that was not undone, in the order of answering, as JSON Lines
(`.jsonl`) or as CSV (`.csv`, with a header). UTF-8. The fields, in this order:

    seed        the seed that recorded the clips and was trained on the answer
    env_steps   env steps of that seed when the clips were recorded
    answer      left, right, tie or skip
    who         who answered
    at          time of the answer: ISO 8601, with the zone
    seconds     seconds from the query's appearance on the screen to the answer
    repeats     the query that this one repeats, to measure the teacher; null (CSV: empty) if none
    query       the query's number in the run
    origin      the run or file that it was imported from; null (CSV: empty) if made in the run
    left_clip   SHA-256 of the left clip's safetensors bytes, in hexadecimal
    right_clip  SHA-256 of the right clip's safetensors bytes
    left        the left clip: safetensors, compressed by zlib, in base64
    right       the right clip

The whole file is validated before any label is used.
"""

import base64
import binascii
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, final

import numpy as np

from backflip.preferences.label_records import ANSWERS, Answer
from backflip.preferences.packed_clips import BadClipError, unpack
from runshelf.errors import UsageError, did_you_mean
from runshelf.received_json import is_too_deep
from runshelf.store.files import disk_errors
from runshelf.store.paths import is_file
from runshelf.store.writing import write_whole

_LARGEST_INTEGER = 2**63 - 1  # of SQLite
_TOO_LARGE = "JSON is nested too deeply, or has too long a number"
_SHOWN = 60  # largest number of characters of an invalid value in a message

# An array's shape, which begins with the clip length, and its dtype.
Shape = tuple[tuple[int, ...], np.dtype]


@final
@dataclass(frozen=True)
class ImportedLabel:
    """A label with its query and both clips; the module's docstring describes the fields.

    Attributes:
        packed: both clips, compressed.
        shapes: shape and dtype of the arrays, equal in both clips.
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
        """The arrays of the left clip, decompressed at each access."""
        return unpack(self.packed[0]).arrays

    @property
    def right(self) -> dict[str, np.ndarray]:
        """The arrays of the right clip, decompressed at each access."""
        return unpack(self.packed[1]).arrays


def write_lines(path: Path, labels: Sequence[ImportedLabel]) -> None:
    """Write labels to `path`, atomically.

    Raises:
        UsageError: the name ends in neither `.jsonl` nor `.csv`.
        UserFacingError: the file cannot be written.
    """
    write = {".jsonl": _json_lines, ".csv": _csv_table}[_format(path)]
    write_whole(path, write([_fields(label) for label in labels]).encode())


def read_lines(path: Path) -> list[ImportedLabel]:
    """Return the labels in a file, validated.

    Raises:
        UsageError: the file is missing or invalid; the message has line and column.
    """
    read = {".jsonl": _from_json_lines, ".csv": _from_csv}[_format(path)]
    return [_label(place, fields) for place, fields in read(_text(path), path)]


def _format(path: Path) -> Literal[".jsonl", ".csv"]:
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".csv"):
        raise UsageError(
            f"`{path}` ends in `{path.suffix}`: a file of labels ends in `.jsonl` (JSON Lines) or "
            "`.csv`"
        )
    return suffix


# Clips, as bytes.


class Checked(NamedTuple):
    """The hash and the shapes of a valid clip."""

    sha: str
    shapes: dict[str, Shape]


def checked_clip(packed: bytes) -> Checked:
    """Return hash and shapes of a packed clip, after validation.

    Raises:
        BadClipError: it is invalid.
    """
    content, arrays = unpack(packed)
    _check_arrays(arrays)
    shapes = {key: (array.shape, array.dtype) for key, array in arrays.items()}
    return Checked(hashlib.sha256(content).hexdigest(), dict(sorted(shapes.items())))


def _check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    # An empty array stands for missing data (a clip without scenes).
    lengths = {key: array.shape[:1] for key, array in arrays.items() if array.size}
    if len(set(lengths.values())) != 1 or () in lengths.values():
        found = ", ".join(f"`{key}` {arrays[key].shape}" for key in sorted(arrays)) or "none"
        raise BadClipError(f"must have arrays of equal length, has {found}")
    for key, array in arrays.items():
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise BadClipError(f"has NaN or infinity in `{key}`")


# Writing.


def _fields(label: ImportedLabel) -> dict[str, Any]:
    """Return the fields of a line, in order."""
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

    def error(self, problem: str, column: str | int | None = None) -> UsageError:
        """Return the error for a problem in this line, and in a column if known."""
        name = f"`{column}`" if isinstance(column, str) else column
        where = "" if column is None else f", column {name}"
        return UsageError(f"`{self.path}` line {self.line}{where}: {problem}")


def _text(path: Path) -> str:
    if not is_file(path):
        raise UsageError(f"there is no file `{path}`: choose a file of exported labels")
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
    # Only line feeds end a line; `splitlines` would split at other characters, too.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = _Place(path, number)
            yield place, _json_object(line, place)


def _json_object(line: str, place: _Place) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _check_once([name for name, _ in pairs], place)
        return dict(pairs)

    try:
        found: object = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise place.error(f"not JSON ({error.msg})", error.colno) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 brackets
        raise place.error(_TOO_LARGE) from error
    if is_too_deep(found):
        raise place.error(_TOO_LARGE)
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
    """Raise the limit of csv for cells to the length of the text, because clips are long."""
    usual = csv.field_size_limit()
    csv.field_size_limit(max(usual, len(text)))
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _rows(text: str, path: Path) -> Iterator[tuple[_Place, list[str]]]:
    """Yield the rows that are not blank, each with its first line."""
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
    _check_once(row, place)
    _check_names(row, place)
    return row


def _check_once(names: Sequence[str], place: _Place) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise place.error("appears twice, expected once", _shown(name))


def _cells(names: list[str], row: list[str], place: _Place) -> dict[str, Any]:
    if len(row) != len(names):
        column = len(names) + 1 if len(row) > len(names) else names[len(row)]
        raise place.error(f"the line has {len(row)} cells, expected {len(names)}", column)
    return {name: _from_cell(name, cell) for name, cell in zip(names, row, strict=True)}


def _from_cell(name: str, cell: str) -> Any:
    """Return the value of a cell as in JSON; the text itself if it is invalid."""
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
    if _trained_on(found[0]) != _trained_on(found[1]):
        left, right = (_listed_shapes(clip.shapes) for clip in found)
        raise place.error(f"has {right}, expected the same as `left`: {left}", "right")
    plain = {name: fields[name] for name in _FIELDS if name not in ("left", "right")}
    plain |= {"seconds": float(plain["seconds"])}
    plain |= {"left_clip": found[0].sha, "right_clip": found[1].sha}
    return ImportedLabel(**plain, packed=packed, shapes=found[0].shapes)


def _trained_on(clip: Checked) -> dict[str, Shape]:
    """Return the shapes without the scene: pictures differ in size, and some clips have none."""
    return {key: shape for key, shape in clip.shapes.items() if key != "scene"}


def invalid_field(fields: Mapping[str, Any]) -> str:
    """Return the name of the first of some fields with an invalid value; empty if there is none."""
    return next((name for name, value in fields.items() if not _FIELDS[name].is_right(value)), "")


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


def _clip(fields: Mapping[str, Any], side: str, place: _Place) -> tuple[bytes, Checked]:
    try:
        packed = base64.b64decode(fields[side], validate=True)
    except (binascii.Error, ValueError) as error:
        raise place.error(f"not base64 ({error})", side) from error
    try:
        found = checked_clip(packed)
    except BadClipError as error:
        raise place.error(f"the clip {_shown(str(error))}", side) from error
    if found.sha != fields[f"{side}_clip"].lower():
        raise place.error(
            f"got `{fields[f'{side}_clip']}`, expected `{found.sha}`, the SHA-256 of `{side}`: "
            "one of them is damaged",
            f"{side}_clip",
        )
    return packed, found


def described(shape: tuple[tuple[Any, ...], np.dtype] | None) -> str:
    """Return an array's shape and dtype as text."""
    return "missing" if shape is None else f"{shape[1]} {shape[0]}"


def _listed_shapes(shapes: Mapping[str, Shape]) -> str:
    return ", ".join(f"`{key}` {described(shape)}" for key, shape in shapes.items())


def _shown(text: str) -> str:
    """Return a value for a message: one short line without control characters."""
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
    except UnicodeEncodeError:  # a lone surrogate, which JSON allows
        return False
    return True


def _is_name(value: Any) -> bool:
    return _is_text(value) and value.isprintable()


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
    "who": _Field("a name of printable characters", _is_name),
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
