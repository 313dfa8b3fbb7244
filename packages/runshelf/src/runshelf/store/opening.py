"""Opens files of a run safely, even if the folder comes from an untrusted source.

No path leads out of the folder, and no file blocks the reader. Every part of a path is opened
relative to the previous part, without following links, so that nothing can be swapped between a
check and an open.
"""

import contextlib
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path

_PART = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_DEEPEST = 32
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


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
            at = os.open(folder, _FLAGS | os.O_DIRECTORY)
            stack.callback(os.close, at)
            for part in parts[:-1]:
                at = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=at)
                stack.callback(os.close, at)
            file = os.open(parts[-1], _FLAGS, dir_fd=at)
        except (OSError, ValueError) as error:
            raise NoFile("no such file") from error
        stack.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NoFile("not a regular file")
        yield file


def read(folder: Path, path: str, most: int) -> bytes:
    """Return the first `most` bytes of a file within `folder`.

    Raises:
        NoFile: as in `opened`.
    """
    return read_part(folder, path, 0, most)[0]


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
