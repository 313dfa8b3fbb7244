"""The spool: two files in memory that a program prints into, and that the recorder reads.

A program whose output is a file goes on printing when the recorder is killed, which it would not
with a pipe; and what it printed is still there for whoever looks next. The files lie where memory
is taken for a disk, since the program's own output must not fail because a disk is full.

A script that opens `/dev/stderr` anew empties the file under everybody's feet. So that this is seen
in every case, a stream begins some way into its file: a file that is shorter than that was emptied.
"""

import fcntl
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from backflip.archive.files import disk_full, is_disk_full, write_whole
from backflip.archive.recorder.kernel import punch_hole
from backflip.archive.recorder.lines import STREAMS, StreamName
from backflip.core.errors import BackflipError

_MEMORY = Path("/dev/shm")
_RUN = "run.json"
_OFFSET = 1 << 20
_PAGE = 1 << 16
_PUNCH_EVERY = 1 << 20
CHUNK = 1 << 16


@final
class Spool:
    """The spool folder of one run."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; `make_spool` makes one, `find_spool` finds it again."""
        self.folder = folder

    def path(self, stream: StreamName) -> Path:
        """Return the file of a stream."""
        return self.folder / stream

    def open_for_program(self, stream: StreamName) -> int:
        """Return a descriptor for the program to print into."""
        return os.open(self.path(stream), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def remove(self) -> None:
        """Remove the folder; a program that still prints into it is not disturbed."""
        shutil.rmtree(self.folder, ignore_errors=True)


def make_spool(run: Path, started: float) -> Spool:
    """Make the spool of the run in folder `run`.

    Raises:
        BackflipError: there is no room for it anywhere.
    """
    problem = OSError(2, "No such file or directory")
    for parent in _places():
        folder = parent / _name(run)
        try:
            folder.mkdir(mode=0o700)
            about = {"run": _identity(run), "started": started, "folder": str(run)}
            (folder / _RUN).write_text(json.dumps(about))
            for stream in STREAMS:
                descriptor = os.open(folder / stream, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                os.ftruncate(descriptor, _OFFSET)
                os.close(descriptor)
        except OSError as error:
            problem = error
            shutil.rmtree(folder, ignore_errors=True)
        else:
            return Spool(folder)
    if is_disk_full(problem):
        raise BackflipError(disk_full(_places()[-1])) from problem
    raise BackflipError(
        f"cannot keep output in `{_places()[-1]}` ({problem.strerror}): make room there, or name "
        "another place by TMPDIR"
    ) from problem


def find_spool(run: Path) -> tuple[Spool, float] | None:
    """Return the spool of the run in folder `run`, and when its program started; None without one.

    What is not this user's own, or was made for another run's folder, is none.
    """
    for parent in _places():
        folder = parent / _name(run)
        with suppress(OSError, ValueError, KeyError, TypeError):
            about: dict[str, Any] = json.loads((folder / _RUN).read_bytes())
            if _is_private(folder) and about["run"] == _identity(run):
                return Spool(folder), float(about["started"])
    return None


def spool_folders() -> list[Path]:
    """Return this user's spools."""
    pattern = f"backflip-{os.geteuid()}-*"
    found = [path for parent in _places() for path in parent.glob(pattern)]
    return [path for path in found if _is_private(path)]


@final
class SpoolReader:
    """Reads one stream of a spool, and gives back the memory of what need not be read again."""

    def __init__(self, spool: Spool, stream: StreamName, start: int = 0) -> None:
        """Begin at byte `start` of the stream.

        Raises:
            OSError: the file is gone.
        """
        self._descriptor = os.open(spool.path(stream), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._moved = spool.folder / f"{stream}.moved"
        self._shift = _read_shift(self._moved)  # of the stream's bytes within the file
        self._offset = self._next_data(start + self._shift)
        self._low: int | None = 0 if self._moved.exists() else None
        self._punched = self._offset - self._offset % _PAGE
        self.times_emptied = 0

    @property
    def position(self) -> int:
        """How much of the stream has been read."""
        return self._offset - self._shift

    @property
    def backlog(self) -> int:
        """How many bytes wait to be read."""
        return os.fstat(self._descriptor).st_size - self._offset

    def read(self) -> bytes:
        """Return what is new, at most about `CHUNK` bytes."""
        if os.fstat(self._descriptor).st_size < min(self._offset, _OFFSET):
            self._was_emptied()
        data = self._read_low() if self._low is not None else b""
        more = os.pread(self._descriptor, CHUNK, self._offset)
        self._offset += len(more)
        return data + more

    def release(self, position: int) -> None:
        """Give back the memory of everything before a position of the stream."""
        end = min(position + self._shift, self._offset)
        end -= end % _PAGE
        if end - self._punched >= _PUNCH_EVERY:
            punch_hole(self._descriptor, self._punched, end)
            self._punched = end

    def is_written(self) -> bool:
        """Return whether a process has the file open to print into."""
        reader = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(self._descriptor)
        self._descriptor = reader
        try:
            # The system grants a read lease only on a file that nobody has open for writing.
            fcntl.fcntl(reader, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            return True
        fcntl.fcntl(reader, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return False

    def close(self) -> None:
        """Read no more."""
        os.close(self._descriptor)

    def _was_emptied(self) -> None:
        """Go on in a file that somebody has emptied.

        It is made long again, so that the next time is seen as well. Who appends goes on behind
        that; who has the file open at its beginning goes on there, below.
        """
        self.times_emptied += 1
        self._shift += _OFFSET - self._offset
        self._offset = self._punched = _OFFSET
        self._low = 0
        with suppress(OSError, BackflipError):
            write_whole(self._moved, str(self._shift).encode())
            os.ftruncate(self._descriptor, max(os.fstat(self._descriptor).st_size, _OFFSET))

    def _read_low(self) -> bytes:
        """Return what was written at the beginning of a file that had been emptied."""
        assert self._low is not None
        data = os.pread(self._descriptor, min(CHUNK, _OFFSET - self._low), self._low)
        data = data.rstrip(b"\0")
        self._low += len(data)
        self._shift -= len(data)
        return data.lstrip(b"\0")

    def _next_data(self, offset: int) -> int:
        """Return where there is data at or behind an offset; what was given back has none."""
        with suppress(OSError):
            return max(os.lseek(self._descriptor, max(offset, 0), os.SEEK_DATA), _OFFSET)
        return max(offset, _OFFSET)


def _read_shift(path: Path) -> int:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return _OFFSET


def _places() -> list[Path]:
    return [path for path in (_MEMORY, Path(tempfile.gettempdir())) if path.is_dir()]


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's, no link, and closed to all others."""
    with suppress(OSError):
        status = folder.lstat()
        return status.st_uid == os.geteuid() and status.st_mode & 0o170777 == 0o040700
    return False


def _name(run: Path) -> str:
    return f"backflip-{os.geteuid()}-{run.name}"


def _identity(run: Path) -> list[int]:
    """Return what no copy of a run's folder has."""
    status = run.stat()
    return [status.st_dev, status.st_ino]
