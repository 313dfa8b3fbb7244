"""Opens files of a run safely, even if the folder comes from an untrusted source.

No path leads out of the folder, and no file blocks the reader. Every part of a path is opened
relative to the previous part, without following links, so that nothing can be swapped between a
check and an open.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Generator, Sequence
from pathlib import Path

from runshelf.errors import DamagedFile
from runshelf.store.files import disk_errors

_PART = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_DEEPEST = 32
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LINK = frozenset({errno.ELOOP, errno.ENOTDIR})  # what a link on the path is answered with


class NoFile(Exception):
    """The folder has no such regular file."""


def checked_parts(path: str) -> list[str]:
    """Return the parts of a relative path.

    Raises:
        NoFile: it is absolute, leads upwards, or has invalid characters or too many parts.
    """
    parts = path.split("/")
    if len(parts) > _DEEPEST:
        raise NoFile(f"a path of {len(parts)} parts")
    for part in parts:
        if part in (".", "..") or not _PART.fullmatch(part):
            raise NoFile("not a path within a run")
    return parts


@contextlib.contextmanager
def opened(folder: Path, path: str) -> Generator[int]:
    """Yield a descriptor of the regular file at `path` within `folder`.

    Raises:
        NoFile: it does not exist or cannot be read, or the path contains a link.
    """
    parts = checked_parts(path)
    with contextlib.ExitStack() as stack:
        try:
            at = stack.enter_context(opened_folder(folder, parts[:-1]))
            file = os.open(parts[-1], _FLAGS, dir_fd=at)
        except (OSError, ValueError) as error:
            raise NoFile("no such file") from error
        stack.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NoFile("not a regular file")
        yield file


@contextlib.contextmanager
def opened_folder(folder: Path, parts: Sequence[str] = ()) -> Generator[int]:
    """Yield a descriptor of `folder`, or of the folder at `parts` below it.

    Raises:
        OSError: it does not exist, or one of the folders is a link or not a folder.
    """
    at = os.open(folder, _FLAGS | os.O_DIRECTORY)
    try:
        for part in parts:
            below = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def read(folder: Path, path: str, most: int) -> bytes:
    """Return the first `most` bytes of a file within `folder`.

    Raises:
        NoFile: as in `opened`.
    """
    return read_part(folder, path, 0, most)[0]


def read_whole(folder: Path, path: str) -> bytes | None:
    """Return the bytes of a file within `folder`; None if it does not exist.

    Raises:
        DamagedFile: it is a link, a pipe or anything else but a regular file.
        UserFacingError: it cannot be read.
    """
    try:
        with opened(folder, path) as file, disk_errors(folder / path):
            return _pread(file, 0, os.fstat(file).st_size)
    except NoFile as error:
        cause = error.__cause__
        if isinstance(cause, FileNotFoundError):
            return None
        if not isinstance(cause, OSError) or cause.errno in _LINK | {errno.ENXIO}:
            raise not_regular(folder / path) from error
        with disk_errors(folder / path):
            raise cause from error


def not_regular(path: Path) -> DamagedFile:
    """Return the error of a name that is not a regular file."""
    return DamagedFile(f"`{path}` is not a regular file: remove it")


def read_part(folder: Path, path: str, start: int, most: int) -> tuple[bytes, int]:
    """Return up to `most` bytes from `start` on, and the file's size.

    Raises:
        NoFile: as in `opened`.
    """
    with opened(folder, path) as file:
        return _pread(file, start, most), os.fstat(file).st_size


def size_of(folder: Path, path: str) -> int | None:
    """Return the size of a file within `folder`; None if it cannot be opened."""
    try:
        with opened(folder, path) as file:
            return os.fstat(file).st_size
    except NoFile:
        return None


def _pread(file: int, start: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := os.pread(file, min(most, 1 << 20), start)):
        pieces.append(piece)
        start += len(piece)
        most -= len(piece)
    return b"".join(pieces)
