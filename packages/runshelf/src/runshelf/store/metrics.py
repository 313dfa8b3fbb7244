"""The metric files of a run.

Each writer (one part of the program) appends records to `metrics-<writer>.jsonl`. `compact` moves
them into `metrics-<writer>.npz`; later records go to the `.jsonl` again. The `.npz` stores the size
and SHA-256 of the lines it was made from. If the `.jsonl` begins with exactly these bytes, a kill
came before they were removed, and readers skip them.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, final

import numpy as np
from jaxtyping import Int64

from runshelf.errors import UsageError
from runshelf.store.columns import Batch, Column, Columns, concatenate, in_order, merge, tabulate
from runshelf.store.files import disk_errors
from runshelf.store.opening import read_whole
from runshelf.store.packed import read_npz
from runshelf.store.recent import Recent
from runshelf.store.records import Lines, LinesWriter, Record, parse

T = TypeVar("T")

SEED, UPDATES = "seed", "updates"
# Writers whose file names are used only once: processes that call `runshelf.log`, and imported
# logs. Their files may hold several records of the same update.
ONCE = ("log-", "import-")

# A line of a few bytes may take a hundred times as many in memory.
_RECENT_BYTES = 8 * 2**20
# Clocks of file systems are coarse: a file may change again without a new time.
_SETTLED_NANOSECONDS = 100_000_000

_WRITER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FILE = re.compile(rf"metrics-({_WRITER.pattern})\.(?:jsonl|npz)")


class BrokenLine(NamedTuple):
    """A line that is not a JSON object; readers skip it.

    Attributes:
        path: its file.
        line: its number among all non-empty lines ever written to the file, from 1.
    """

    path: Path
    line: int


class Written(NamedTuple):
    """Everything that one writer wrote.

    Attributes:
        batch: the records.
        data: the bytes of the `.jsonl`.
        packed: the number of records in the `.npz`.
        covered: the number of bytes of `data` that are also in the `.npz`.
    """

    batch: Batch
    data: bytes
    packed: int
    covered: int


_recent_files: Recent[Written] = Recent(_RECENT_BYTES)
_recent_columns: Recent[Mapping[str, Column]] = Recent(_RECENT_BYTES)


@final
class MetricsWriter(LinesWriter):
    """Appends metric records of one part of the program to `metrics-<writer>.jsonl`.

    Records of one writer with the same `seed` and `updates` are the same measurement, repeated
    after a resume; so two kinds of measurement need two writers.
    """

    def __init__(self, folder: Path, writer: str) -> None:
        """Open the file of `writer` in the run's `folder`.

        Raises:
            UsageError: `writer` is not a valid name.
            UserFacingError: the file cannot be opened.
        """
        super().__init__(lines_path(folder, writer))


def writers(folder: Path) -> list[str]:
    """Return the sorted names of the metric writers of the run in `folder`.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    with disk_errors(folder):
        matches = (_FILE.fullmatch(path.name) for path in folder.iterdir())
        return sorted({match[1] for match in matches if match})


def stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, modification time and size of a run's metrics files, to detect changes."""
    found: list[tuple[str, int, int]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("metrics-"):
                status = entry.stat(follow_symlinks=False)
                found.append((entry.name, status.st_mtime_ns, status.st_size))
    return tuple(sorted(found))


def lines_path(folder: Path, writer: str) -> Path:
    """Return the file that a writer appends to.

    Raises:
        UsageError: `writer` is not a valid name.
    """
    if not _WRITER.fullmatch(writer):
        raise UsageError(f"writer `{writer}` is not a name: use letters, digits, `.`, `_` and `-`")
    return folder / f"metrics-{writer}.jsonl"


def read_written(folder: Path, writer: str) -> Written:
    """Return everything that one writer wrote.

    Raises:
        UsageError: `writer` is not a valid name.
        DamagedFile: the columns cannot be read.
        UserFacingError: a file cannot be read.
    """
    path = lines_path(folder, writer)
    states = [_state(path), _state(path.with_suffix(".npz"))]
    return _recently(_recent_files, (path,), states, lambda: _read_written(path))


def _read_written(path: Path) -> Written:
    columns = path.with_suffix(".npz")
    while True:
        before = _state(columns)
        contents = read_npz(columns) if before else None
        data = _bytes(path)
        if _state(columns) == before:  # otherwise another process compacted in the meantime
            break
    covered = 0
    if contents and hashlib.sha256(data[: contents.bytes]).hexdigest() == contents.sha256:
        covered = contents.bytes
    rest = tabulate([line for line in data[covered:].split(b"\n") if line])
    if not contents:
        return Written(concatenate([rest]), data, 0, covered)
    batch = concatenate([contents.batch, rest])
    return Written(batch, data, contents.batch.size, covered)


def read_metrics(folder: Path, writer: str | None = None) -> Lines:
    """Return the metric records of a run, in the order in which they were first written.

    If a writer repeats a pair of `seed` and `updates`, as after a resume, only the last record is
    returned, in the place of the first; the file keeps both. Writers whose names begin with `log-`
    or `import-` may write several records per update, and all of them are returned.

    Args:
        folder: the run's folder.
        writer: the writer to read; by default all, in the order of their names.

    Raises:
        UsageError: `writer` is not a valid name.
        DamagedFile: a file of columns is damaged.
        UserFacingError: a file cannot be read.
    """
    found, torn = list[Record](), 0
    for name in writers(folder) if writer is None else [writer]:
        batch = read_written(folder, name).batch
        kept = dict(zip(_places(name, batch).tolist(), batch.records(), strict=True))
        found += [kept[row] or {} for row in sorted(kept) if row >= 0 and kept[row] is not None]
        torn += sum(record is None for record in batch.others.values())
    return Lines(found, torn)


def read_columns(folder: Path) -> Mapping[str, Column]:
    """Return the numbers in the metric records of a run; repeated records count once.

    Rows are numbered over all writers, in the order of their names.

    Raises:
        DamagedFile: columns cannot be read.
        UserFacingError: a file cannot be read.
    """
    names = writers(folder)
    paths = [lines_path(folder, name) for name in names]
    states = [_state(file) for path in paths for file in (path, path.with_suffix(".npz"))]
    key = (folder, *names)
    return _recently(_recent_columns, key, states, lambda: _read_columns(folder, names))


def _recently(
    recent: Recent[T], key: Hashable, states: Sequence["_State | None"], read: Callable[[], T]
) -> T:
    """Return what was read from files in these states, or read it now."""
    found = [state for state in states if state]
    newest = max((state.modified for state in found), default=0)
    if time.time_ns() - newest < _SETTLED_NANOSECONDS:
        return read()
    return recent.get((key, *states), sum(state.size for state in found), read)


def _read_columns(folder: Path, names: Sequence[str]) -> Mapping[str, Column]:
    pieces: list[tuple[int, Mapping[str, Column]]] = []
    start = 0
    for writer in names:
        batch = read_written(folder, writer).batch
        pieces.append((start, _moved(batch.numbers, _places(writer, batch))))
        start += batch.size
    return merge(pieces)


def metric_sizes(folder: Path) -> dict[str, int]:
    """Return the sizes of the metrics files of a run by name; every new record changes one.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    with disk_errors(folder):
        return {
            entry.name: entry.stat(follow_symlinks=False).st_size
            for entry in os.scandir(folder)
            if entry.name.startswith("metrics-") and entry.name.endswith((".jsonl", ".npz"))
        }


def broken_lines(folder: Path) -> list[BrokenLine]:
    """Return the lines of all writers and of `events.jsonl` that are not JSON objects.

    Raises:
        DamagedFile: columns cannot be read.
        UserFacingError: a file cannot be read.
    """
    found: list[BrokenLine] = []
    for writer in writers(folder):
        found += broken_in(read_written(folder, writer).batch, lines_path(folder, writer))
    return found + _broken_events(folder)


def broken_in(batch: Batch, path: Path) -> list[BrokenLine]:
    """Return the lines of a batch that are not JSON objects; `path` is the file they are from."""
    rows = sorted(row for row, record in batch.others.items() if record is None)
    return [BrokenLine(path, row + 1) for row in rows]


def _places(writer: str, batch: Batch) -> Int64[np.ndarray, " rows"]:
    """Return the row that each record moves to; -1 for a record that was replaced.

    The last record of a seed and update moves to the row of the first.
    """
    places = np.arange(batch.size)
    columns = batch.numbers
    if writer.startswith(ONCE) or not {SEED, UPDATES} <= columns.keys():
        return places
    rows, updates = columns[UPDATES]
    seed, has_seed = columns[SEED].at(rows)
    with np.errstate(invalid="ignore"):
        is_keyed = has_seed & (seed % 1 == 0) & (updates % 1 == 0)
    rows, seed, updates = rows[is_keyed], seed[is_keyed], updates[is_keyed]
    rank = np.lexsort((rows, updates, seed))
    is_new = np.ones(len(rank), np.bool_)
    is_new[1:] = (np.diff(seed[rank]) != 0) | (np.diff(updates[rank]) != 0)
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(rank))[: len(first)] - 1
    places[rows] = -1
    places[rows[rank[last]]] = rows[rank[first]]
    return places


def _moved(columns: Mapping[str, Column], places: Int64[np.ndarray, " n"]) -> Mapping[str, Column]:
    """Return columns with every record moved to its place."""
    if (np.diff(places) == 1).all():
        return columns

    def load(key: str) -> Column:
        rows, values = columns[key]
        moved = places[rows]
        return in_order(moved[moved >= 0], values[moved >= 0])

    return Columns(columns, load)


def _broken_events(folder: Path) -> list[BrokenLine]:
    path = folder / "events.jsonl"
    lines = [line for line in _bytes(path).split(b"\n") if line]
    return [BrokenLine(path, at) for at, line in enumerate(lines, 1) if parse(line) is None]


def _bytes(path: Path) -> bytes:
    return read_whole(path.parent, path.name) or b""


class _State(NamedTuple):
    """What changes when a file is written or replaced."""

    inode: int
    modified: int
    size: int


def _state(path: Path) -> _State | None:
    """Return the state of a file; None if it is missing."""
    with disk_errors(path):
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
        return _State(found.st_ino, found.st_mtime_ns, found.st_size)
