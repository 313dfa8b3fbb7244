"""Compaction: moves the metric lines of a finished run into columns.

A file with a line that is not a JSON object stays unchanged, so that a person can inspect it.
"""

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path

from runshelf.store.files import disk_errors
from runshelf.store.metrics import (
    ONCE,
    BrokenLine,
    broken_in,
    lines_path,
    read_written,
    writers,
)
from runshelf.store.opening import opened_folder
from runshelf.store.packed import to_npz
from runshelf.store.summary import write_summary
from runshelf.store.writing import open_to_lock, remove_file, replace_file

_FEW_BYTES = 1 << 20  # lines of this size are read in some hundredths of a second
_MANY_BYTES = 1 << 27  # lines of this size are compacted in some seconds


def compact(folder: Path) -> list[BrokenLine]:
    """Move the metric lines of a run into columns, and write its summary.

    A file that a process has open for writing is skipped. So is a file with a line that is not a
    JSON object; the first such line of each file is returned. After a kill at any moment readers
    still see every record exactly once.

    Raises:
        DamagedFile: existing columns cannot be read; the files of that writer are unchanged.
        UserFacingError: the disk is full or a file cannot be written; nothing is lost.
    """
    with ExitStack() as stack:
        with disk_errors(folder):
            own = stack.enter_context(opened_folder(folder))
        if not _lock(own):
            return []  # another process is compacting this run
        found = [_compact_writer(folder, writer) for writer in writers(folder)]
        kept = [broken for broken in found if broken]
        write_summary(folder, kept)
    return kept


def finish_metrics(folder: Path) -> None:
    """Write the summary of a run that has just ended, and compact its lines if that is useful.

    Small files stay lines, which a person can read. Very large files are left to `gc`, since the
    user is waiting for the program to end.

    Raises:
        UserFacingError: as `compact` does.
    """
    size = sum(path.lstat().st_size for path in folder.glob("metrics-*.jsonl"))
    if size < _FEW_BYTES:
        write_summary(folder)
    elif size <= _MANY_BYTES:
        compact(folder)


def _compact_writer(folder: Path, writer: str) -> BrokenLine | None:
    """Move the lines of one writer into columns, or return the broken line that prevents it."""
    path = lines_path(folder, writer)
    with ExitStack() as stack:
        lines = open_to_lock(folder, path.name)
        if lines is None:
            return None
        stack.callback(os.close, lines)
        if not _lock(lines):
            return None
        written = read_written(folder, writer)
        broken = broken_in(written.batch, path)
        if broken:
            return broken[0]
        if written.batch.size > written.packed:
            data = to_npz(written.batch, written.data)
            if data is None:
                return None
            replace_file(folder, path.with_suffix(".npz").name, data)
        elif not written.covered:
            return None
        _remove_lines(path, written.data)
    return None


def _remove_lines(path: Path, taken: bytes) -> None:
    """Remove all lines from a file.

    A writer that resumes may write the same lines again. A reader must not take them for lines that
    are already in the columns, so the file gets one more leading empty line than before.
    """
    if path.name.startswith(tuple(f"metrics-{name}" for name in ONCE)):
        remove_file(path.parent, path.name)
        return
    replace_file(path.parent, path.name, b"\n" * (len(taken) - len(taken.lstrip(b"\n")) + 1))


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: the caller must know that no process writes
    return True
