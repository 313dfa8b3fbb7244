"""The metric records of a run, whether still lines or already columns, and what makes them columns.

`metrics-<writer>.npz` holds the front part of what a writer wrote, `metrics-<writer>.jsonl` the
rest. A file of columns says how many bytes of the lines it holds, and their SHA-256. As long as the
lines begin with just these bytes, a kill fell between writing columns and shortening lines, and a
reader passes over them. A shortened file begins with one empty line more than what was taken from
it, so that lines written anew are never mistaken for those. A file with a line that is no record
stays lines, byte for byte: it is evidence of what went wrong, for a person to read.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from backflip.archive.checkpoint import disk_errors, write_whole
from backflip.archive.metrics import Lines
from backflip.archive.tables import Batch, Record, join, parse, read_npz, tabulate, to_npz

_FILE = re.compile(r"metrics-([A-Za-z0-9][A-Za-z0-9._-]*)\.(?:jsonl|npz)")
# Files of these writers have names that nobody uses again, and may hold several records of one
# update: `backflip.log` of one process each, and what was imported.
ONCE = ("log-", "import-")
_FEW_BYTES = 1 << 20  # of lines: read in some hundredths of a second
_MANY_BYTES = 1 << 27  # of lines: columns in some seconds


class BrokenLine(NamedTuple):
    """A line that is no record, that is no JSON object, and was left out.

    Attributes:
        path: the file it was written to.
        line: which of its lines that are not empty, the first being 1, as first written.
    """

    path: Path
    line: int


def writers(folder: Path) -> list[str]:
    """Return the names of those who wrote metrics of the run in `folder`, sorted.

    Raises:
        BackflipError: the folder cannot be read.
    """
    with disk_errors(folder):
        matches = (_FILE.fullmatch(path.name) for path in folder.iterdir())
        return sorted({match[1] for match in matches if match})


def read_batches(folder: Path, writer: str) -> list[Batch]:
    """Return what a writer wrote, oldest first: what is columns already, then the rest.

    Raises:
        DamagedFile: its columns cannot be read.
        BackflipError: a file cannot be read.
    """
    return [batch for batch in _read(folder, writer).batches if len(batch.order)]


def read_records(folder: Path, writer: str | None = None) -> Lines:
    """Return the records of one writer, or of all in the order of their names, as first written.

    Raises:
        DamagedFile: columns cannot be read.
        BackflipError: a file cannot be read.
    """
    names = writers(folder) if writer is None else [writer]
    found = [item for name in names for item in _everything(folder, name)]
    records = [record for record in found if record is not None]
    return Lines(records, len(found) - len(records))


def broken_lines(folder: Path) -> list[BrokenLine]:
    """Return the lines of all writers that are no records, and those of `events.jsonl`.

    Raises:
        DamagedFile: columns cannot be read.
        BackflipError: a file cannot be read.
    """
    found: list[BrokenLine] = []
    for writer in writers(folder):
        before = 1
        for batch in read_batches(folder, writer):
            places = batch.positions(-1).tolist()
            broken = [at for at, record in zip(places, batch.others, strict=True) if record is None]
            path = folder / f"metrics-{writer}.jsonl"
            found += [BrokenLine(path, before + at) for at in broken]
            before += len(batch.order)
    return found + _broken_events(folder)


def compact(folder: Path) -> list[BrokenLine]:
    """Make columns of the lines of a run that nobody writes, and write its summary.

    A file that a process has open for logging is left as it is; so is one with lines that are no
    records, and the first of these is returned. A kill at any moment leaves every record to be read
    exactly once.

    Raises:
        DamagedFile: columns from before cannot be read; nothing of that writer was changed.
        BackflipError: the disk is full or a file cannot be written; nothing is lost.
    """
    from backflip.archive.series import write_summary  # noqa: PLC0415  (it reads what this writes)

    with ExitStack() as stack:
        if not stack.enter_context(_alone(folder)):
            return []  # another process is at it
        found = [_compact_writer(folder, writer) for writer in writers(folder)]
        kept = [broken for broken in found if broken]
        write_summary(folder, kept)
    return kept


def wind_up(folder: Path) -> None:
    """Do for a run that has just ended what makes it quick to read: a summary, perhaps columns.

    Lines that are few stay lines, since those a person can read; very many are left to `gc`, since
    somebody waits for the program to end.

    Raises:
        BackflipError: as of `compact`.
    """
    from backflip.archive.series import write_summary  # noqa: PLC0415  (it reads what this writes)

    sizes = [path.stat().st_size for path in folder.glob("metrics-*.jsonl")]
    if _FEW_BYTES <= sum(sizes) <= _MANY_BYTES:
        compact(folder)
    elif sum(sizes) < _FEW_BYTES:
        write_summary(folder)


class _Written(NamedTuple):
    """What a writer wrote.

    Attributes:
        batches: what is columns, then the rest.
        data: all bytes of the lines' file.
        covered: how many of these are columns already.
    """

    batches: list[Batch]
    data: bytes
    covered: int


def _read(folder: Path, writer: str) -> _Written:
    columns, path = folder / f"metrics-{writer}.npz", folder / f"metrics-{writer}.jsonl"
    while True:
        before = _identity(columns)
        contents = read_npz(columns) if before else None
        data = _bytes(path)
        if _identity(columns) == before:  # else lines became columns in between: once more
            break
    covered = 0
    if contents:
        length = int(contents.covers["bytes"])
        is_kept = hashlib.sha256(data[:length]).hexdigest() == contents.covers["sha256"]
        covered = length if is_kept and length <= len(data) else 0
    tail = tabulate([line for line in data[covered:].split(b"\n") if line])
    return _Written([contents.batch, tail] if contents else [tail], data, covered)


def _everything(folder: Path, writer: str) -> Iterator[Record | None]:
    for batch in read_batches(folder, writer):
        yield from batch.records()


def _broken_events(folder: Path) -> list[BrokenLine]:
    path = folder / "events.jsonl"
    if path.is_symlink() or not path.is_file():
        return []
    lines = [line for line in _bytes(path).split(b"\n") if line]
    return [BrokenLine(path, at) for at, line in enumerate(lines, 1) if parse(line) is None]


def _compact_writer(folder: Path, writer: str) -> BrokenLine | None:
    """Make columns of a writer's lines; return the line for which they stay lines, if any does."""
    path = folder / f"metrics-{writer}.jsonl"
    with _nobody_writes(path) as is_free:
        if not is_free:
            return None
        written = _read(folder, writer)
        tail = written.batches[-1]
        if None in tail.others:
            at = tail.positions(-1)[tail.others.index(None)]
            before = sum(len(batch.order) for batch in written.batches[:-1])
            return BrokenLine(path, before + int(at) + 1)
        if len(tail.order):
            whole = join(written.batches[0], tail) if len(written.batches) > 1 else tail
            covers = {
                "bytes": len(written.data),
                "sha256": hashlib.sha256(written.data).hexdigest(),
            }
            data = to_npz(whole, covers)
            if data is None:
                return None
            write_whole(folder / f"metrics-{writer}.npz", data)
        elif not written.covered:
            return None
        _shorten(path, written.data)
    return None


def _shorten(path: Path, taken: bytes) -> None:
    """Take all lines out of a file, and leave nothing that is like what was taken."""
    if path.name.startswith(tuple(f"metrics-{name}" for name in ONCE)):
        with disk_errors(path):
            path.unlink()
        return
    write_whole(path, b"\n" * (len(taken) - len(taken.lstrip(b"\n")) + 1))


def _bytes(path: Path) -> bytes:
    with disk_errors(path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells one file under this name from the next; None where there is none."""
    with disk_errors(path):
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns


@contextmanager
def _alone(folder: Path) -> Generator[bool, None, None]:
    """Yield whether nobody else compacts the run, and keep others from it meanwhile."""
    with disk_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _nobody_writes(path: Path) -> Generator[bool, None, None]:
    """Yield whether no process has the file open for logging, and keep others from it meanwhile."""
    with disk_errors(path):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            descriptor = -1
    if descriptor < 0:
        yield False
        return
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: the caller's word that nobody writes must do
    return True
