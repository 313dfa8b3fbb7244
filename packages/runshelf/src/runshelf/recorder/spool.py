"""The spool: two files in a run's folder. The program prints into them; the recorder reads them.

A file keeps accepting output after the recorder was killed; a pipe would not. The recorder copies
the spool to `output.log`, and frees the disk space of copied data. It reserves some space ahead, so
that `print` does not fail in the program when the disk is full.

A script that reopens `/dev/stderr` truncates the file. To detect this, each stream begins at an
offset in its file: a file shorter than the offset was truncated.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import final

from runshelf.errors import UserFacingError
from runshelf.recorder.lines import STREAMS, StreamName
from runshelf.recorder.linux import punch_hole, reserve
from runshelf.store.files import disk_errors
from runshelf.store.opening import NoFile, opened, read
from runshelf.store.trees import remove_tree
from runshelf.store.writing import create, make_folder, open_in_place, replace_file

SPOOL = "spool"
CHUNK = 1 << 16
_STARTED = "started"
_OFFSET = 1 << 20
_PAGE = 1 << 16
_PUNCH_EVERY = 1 << 20
_RESERVED = 1 << 18
_MOST_LEFT = 1 << 30


@final
class Spool:
    """The spool folder of one run."""

    def __init__(self, run: Path) -> None:
        """Create the spool of the run in the folder `run`.

        Raises:
            UserFacingError: the disk is full.
        """
        self._run = run
        self.folder = make_folder(run, SPOOL, mode=0o700, exist_ok=False)
        os.close(create(run, f"{SPOOL}/{_STARTED}"))
        for stream in STREAMS:
            with (
                disk_errors(self.folder),
                os.fdopen(create(run, f"{SPOOL}/{stream}"), "wb") as file,
            ):
                file.truncate(_OFFSET)

    def path(self, stream: StreamName) -> Path:
        """Return the file of a stream."""
        return self.folder / stream

    def open_for_program(self, stream: StreamName) -> int:
        """Return a descriptor for the program to print into."""
        return open_in_place(self._run, f"{SPOOL}/{stream}", appends=True)

    def open_to_read(self, stream: StreamName) -> int:
        """Return a descriptor for the recorder, which also frees what it has read."""
        return open_in_place(self._run, f"{SPOOL}/{stream}")

    def move(self, stream: StreamName, shift: int) -> None:
        """Record where a stream begins in its file.

        Raises:
            UserFacingError: the disk is full.
        """
        replace_file(self._run, f"{SPOOL}/{stream}.moved", str(shift).encode())

    def remove(self) -> None:
        """Remove the folder; a process that still prints into it is not affected."""
        with suppress(OSError):
            remove_tree(self.folder)


@final
class SpoolReader:
    """Reads one stream of a spool, and frees the disk space of copied data."""

    def __init__(self, spool: Spool, stream: StreamName) -> None:
        self._descriptor = spool.open_to_read(stream)
        self._spool = spool
        self._stream: StreamName = stream
        self._shift = self._offset = self._punched = _OFFSET
        self._low: int | None = None
        self._reserved = 0
        self._reserve(_OFFSET)
        self.times_emptied = 0

    @property
    def backlog(self) -> int:
        """The number of unread bytes."""
        return os.fstat(self._descriptor).st_size - self._offset

    def read(self) -> bytes:
        """Return new data, at most about `CHUNK` bytes."""
        size = os.fstat(self._descriptor).st_size
        if size < min(self._offset, _OFFSET):
            self._was_emptied()
        data = self._read_low() if self._low is not None else b""
        more = os.pread(self._descriptor, CHUNK, self._offset)
        self._offset += len(more)
        return data + more

    def release(self, position: int) -> bool:
        """Free the disk space before a position of the stream, and reserve some ahead.

        Returns:
            Whether the file was changed; a watch reports that like a write.
        """
        end = min(position + self._shift, self._offset)
        end -= end % _PAGE
        is_freed = end - self._punched >= _PUNCH_EVERY
        if is_freed:
            punch_hole(self._descriptor, self._punched, end)
            self._punched = end
        is_reserved = self._offset > self._reserved - _RESERVED // 2
        if is_reserved:
            self._reserve(self._offset)
        return is_freed or is_reserved

    def close(self) -> None:
        """Stop reading."""
        os.close(self._descriptor)

    def _reserve(self, size: int) -> None:
        self._reserved = size + _RESERVED
        reserve(self._descriptor, size, self._reserved)

    def _was_emptied(self) -> None:
        """Continue in a file that was truncated.

        The file is extended to the offset again, to detect the next truncation too. Processes that
        append then write after the offset. A process that reopened the file writes from position 0,
        below the offset.
        """
        self.times_emptied += 1
        self._shift += _OFFSET - self._offset
        self._offset = self._punched = _OFFSET
        self._low = 0
        with suppress(OSError, UserFacingError):
            self._spool.move(self._stream, self._shift)
            os.ftruncate(self._descriptor, max(os.fstat(self._descriptor).st_size, _OFFSET))
            self._reserve(_OFFSET)

    def _read_low(self) -> bytes:
        """Return data written below the offset of a truncated file."""
        assert self._low is not None
        data = os.pread(self._descriptor, min(CHUNK, _OFFSET - self._low), self._low)
        data = data.rstrip(b"\0")
        self._low += len(data)
        self._shift -= len(data)
        return data.lstrip(b"\0")


def started_at(run: Path) -> float:
    """Return when the program of a run's spool started, in Unix seconds.

    Raises:
        NoFile: there is no spool.
    """
    with opened(run, f"{SPOOL}/{_STARTED}") as file:
        return os.fstat(file).st_mtime


def rest_of(run: Path, stream: StreamName, start: int) -> tuple[bytes, float]:
    """Return a stream's data in the spool from position `start` on, and when it was printed.

    Raises:
        NoFile: there is no spool.
    """
    with opened(run, f"{SPOOL}/{stream}") as file:
        found = os.fstat(file)
        first = start + _shift_of(run, stream) if found.st_size >= _OFFSET else 0
        data = os.pread(file, max(min(found.st_size - first, _MOST_LEFT), 0), max(first, 0))
    return data.lstrip(b"\0"), found.st_mtime  # freed space reads as zeros


def _shift_of(run: Path, stream: StreamName) -> int:
    with suppress(NoFile, ValueError):
        return int(read(run, f"{SPOOL}/{stream}.moved", 20))
    return _OFFSET
