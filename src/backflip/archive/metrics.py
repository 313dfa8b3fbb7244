"""Metrics: one JSON object a line, appended by one unbuffered write per record.

A record that `write` returned from is in the file whatever happens to the process. A line that a
kill or a full disk cut short is skipped by the reader and closed by the next writer. JSON has no
NaN and no infinity: they are stored as the strings "NaN", "Infinity" and "-Infinity", and read
back as floats (so a text metric cannot have one of these three as its value).
"""

import fcntl
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast, final

import numpy as np

from backflip.archive.checkpoint import disk_errors
from backflip.core.errors import UsageError

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_WRITER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Lines(NamedTuple):
    """What a file of JSON lines held.

    Attributes:
        records: the whole records.
        torn: how many lines were not whole, and left out.
    """

    records: list[dict[str, Any]]
    torn: int


@final
class LinesWriter:
    """Appends records to one file of JSON lines; one writer per file."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending; create it if need be.

        Raises:
            BackflipError: the file cannot be opened.
        """
        self.path = path
        with disk_errors(path):
            self._descriptor = _open_shared(path)
            self._torn = _ends_torn(self._descriptor)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append `record`; it is kept, whatever happens to the process, once this returns.

        Args:
            record: JSON values, numpy scalars and arrays (any array that numpy understands).

        Raises:
            UsageError: a value is nothing of the kind.
            BackflipError: the disk is full; what was written before is intact.
        """
        line = json.dumps(to_json(record), allow_nan=False).encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        self._torn = True  # until the whole line is known to be in the file
        with disk_errors(self.path):
            rest = line
            while rest:  # once, but for a disk that fills up
                rest = rest[os.write(self._descriptor, rest) :]
        self._torn = False

    def sync(self) -> None:
        """Make everything written so far survive a power cut, not only a kill."""
        with disk_errors(self.path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> "LinesWriter":
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


@final
class MetricsWriter:
    """Appends metric records of one part of the program to `metrics-<writer>.jsonl`.

    Records with the same `seed` and `updates` from one writer are the same measurement, repeated
    after a resume; two kinds of measurement need two writers.
    """

    def __init__(self, folder: Path, writer: str) -> None:
        """Open the file of `writer` in the run's `folder`.

        Raises:
            UsageError: `writer` would not make a file name.
            BackflipError: the file cannot be opened.
        """
        self._lines = LinesWriter(_metrics_path(folder, writer))

    @property
    def path(self) -> Path:
        """The file written to."""
        return self._lines.path

    def write(self, record: Mapping[str, Any]) -> None:
        """Append `record`; see `LinesWriter.write`."""
        self._lines.write(record)

    def sync(self) -> None:
        """Make everything written so far survive a power cut, not only a kill."""
        self._lines.sync()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def __enter__(self) -> "MetricsWriter":
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def read_metrics(folder: Path, writer: str | None = None) -> Lines:
    """Return the metric records of a run, in the order first written, columns or not.

    Where a writer repeats a pair of `seed` and `updates`, as it does after a resume, the last
    record stands in the place of the first. Both stay in the file. Not so of writers whose names
    begin with `log-` or `import-`: theirs are several records of one update.

    Args:
        folder: the run's folder.
        writer: read only this writer's file; by default all, in the order of their names.

    Raises:
        UsageError: `writer` is not a writer's name.
        DamagedFile: a file of columns is damaged.
        BackflipError: a file cannot be read.
    """
    from backflip.archive import columns  # noqa: PLC0415  (it is made of what is here)

    if writer is not None:
        _metrics_path(folder, writer)
    names = columns.writers(folder) if writer is None else [writer]
    files = [columns.read_records(folder, name) for name in names]
    records = [
        record
        for name, file in zip(names, files, strict=True)
        for record in (
            file.records if name.startswith(columns.ONCE) else _last_of_each(file.records)
        )
    ]
    return Lines(records, sum(file.torn for file in files))


def read_lines(path: Path) -> Lines:
    """Return the records of a file of JSON lines; a missing file has none.

    Raises:
        BackflipError: the file cannot be read.
    """
    with disk_errors(path):
        data = path.read_bytes() if path.exists() else b""
    parsed = [_parse(line) for line in data.split(b"\n") if line]
    records = [record for record in parsed if record is not None]
    return Lines(records, len(parsed) - len(records))


def to_json(value: Any) -> Any:
    """Return `value` as plain JSON values, non-finite floats as strings.

    Raises:
        UsageError: a value is no number, string, boolean, None, array, list or mapping of these.
    """
    match value:
        case None | str():
            return value
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return _finite_or_name(float(value))
        case Mapping():
            return {_text(key): to_json(item) for key, item in cast("Any", value).items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [to_json(item) for item in cast("Any", value)]
        case _ if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biufUO":
            return to_json(np.asarray(value).tolist())
        case _:
            raise UsageError(f"`{value!r:.60}` cannot be recorded: give numbers, text or arrays")


def from_json(value: Any) -> Any:
    """Return what `to_json` was given, with lists for arrays: the inverse of its encoding."""
    match value:
        case str():
            return _NON_FINITE.get(value, value)
        case list():
            return [from_json(item) for item in cast("list[Any]", value)]
        case dict():
            return {key: from_json(item) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _open_shared(path: Path) -> int:
    """Return a descriptor to append to `path`, locked so that nobody makes columns of it meanwhile.

    Whoever does that holds the lock for a moment and may have put another file in its place.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        os.close(descriptor)


def _metrics_path(folder: Path, writer: str) -> Path:
    if not _WRITER_NAME.fullmatch(writer):
        raise UsageError(f"writer `{writer}` is not a name: use letters, digits, `.`, `_` and `-`")
    return folder / f"metrics-{writer}.jsonl"


def _ends_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return the record in `line`, or None if it is not whole.

    A line that lacks nothing but its newline is whole: no proper prefix of an object is one.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return from_json(record) if isinstance(record, dict) else None


def _last_of_each(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    latest: dict[object, dict[str, Any]] = {}
    for index, record in enumerate(records):
        seed, updates = record.get("seed"), record.get("updates")
        is_keyed = isinstance(seed, int) and isinstance(updates, int)
        latest[(seed, updates) if is_keyed else index] = record
    return list(latest.values())


def _finite_or_name(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _text(key: object) -> str:
    if not isinstance(key, str):
        raise UsageError(f"key `{key!r:.60}` cannot be recorded: give a string")
    return key
