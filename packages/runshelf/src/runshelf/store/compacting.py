"""Moves the metric lines of a run that nobody writes into columns.

A file with a line that is not a JSON object stays as it is, byte for byte: it shows a person what
went wrong.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from runshelf.store.files import disk_errors, write_whole
from runshelf.store.metrics import (
    ONCE,
    BrokenLine,
    broken_in,
    lines_path,
    read_written,
    writers,
)
from runshelf.store.packed import to_npz
from runshelf.store.summary import write_summary

_FEW_BYTES = 1 << 20  # of lines: read in some hundredths of a second
_MANY_BYTES = 1 << 27  # of lines: packed in some seconds


def compact(folder: Path) -> list[BrokenLine]:
    """Move the metric lines of a run into columns, and write its summary.

    A file that a process has open for writing is left as it is; so is one with a line that is not a
    JSON object, and the first such line of each file is returned. After a kill at any moment every
    record is still read exactly once.

    Raises:
        DamagedFile: earlier columns cannot be read; nothing of that writer was changed.
        UserFacingError: the disk is full or a file cannot be written; nothing is lost.
    """
    with ExitStack() as stack:
        if not stack.enter_context(_locked(folder, os.O_RDONLY)):
            return []  # another process compacts this run
        found = [_compact_writer(folder, writer) for writer in writers(folder)]
        kept = [broken for broken in found if broken]
        write_summary(folder, kept)
    return kept


def wind_up(folder: Path) -> None:
    """Prepare a run that has just ended for quick reading: with a summary, perhaps with columns.

    A few lines stay lines, since a person can read those; very many are left to `gc`, since the
    user waits for the program to end.

    Raises:
        UserFacingError: as `compact` does.
    """
    size = sum(path.stat().st_size for path in folder.glob("metrics-*.jsonl"))
    if size < _FEW_BYTES:
        write_summary(folder)
    elif size <= _MANY_BYTES:
        compact(folder)


def _compact_writer(folder: Path, writer: str) -> BrokenLine | None:
    """Move the lines of one writer into columns, or return the line for which they stay lines."""
    path = lines_path(folder, writer)
    with _locked(path, os.O_RDWR) as is_free:
        if not is_free:
            return None
        written = read_written(folder, writer)
        broken = broken_in(written.batch, path)
        if broken:
            return broken[0]
        if written.batch.size > written.packed:
            data = to_npz(written.batch, written.data)
            if data is None:
                return None
            write_whole(path.with_suffix(".npz"), data)
        elif not written.covered:
            return None
        _remove_lines(path, written.data)
    return None


def _remove_lines(path: Path, taken: bytes) -> None:
    """Remove all lines from a file.

    A writer that resumes may write the same lines again. They must not be taken for lines that are
    in the columns already, so the file begins with one empty line more than before.
    """
    if path.name.startswith(tuple(f"metrics-{name}" for name in ONCE)):
        with disk_errors(path):
            path.unlink()
        return
    write_whole(path, b"\n" * (len(taken) - len(taken.lstrip(b"\n")) + 1))


@contextmanager
def _locked(path: Path, flags: int) -> Generator[bool, None, None]:
    """Yield whether this process has the lock on a file or folder; False if it is not there."""
    with disk_errors(path):
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = -1
    if descriptor < 0:
        yield False
        return
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: the caller has to know that nobody writes
    return True
