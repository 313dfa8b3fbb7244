"""Files of a run, opened on behalf of somebody at a page.

A run's folder may have been written by anybody: what is in it names no file outside it, whatever
it says, and nothing in it makes the server wait. Every part of a path is opened without following
links, relative to the part before it, so that nothing can be swapped between a look and an open.
"""

import contextlib
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple, final

_PART = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_DEEPEST = 32
MOST_LISTED = 2_000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class NoFile(Exception):
    """There is no such regular file within the folder."""


@final
class Listed(NamedTuple):
    """A file within a run's folder.

    Attributes:
        path: relative to the folder, parts joined by `/`.
        size: in bytes; None for what cannot be opened here (a link, a pipe, a device).
        kind: `file`, or what it is instead.
    """

    path: str
    size: int | None
    kind: str


def checked_parts(path: str) -> list[str]:
    """Return the parts of a relative path.

    Raises:
        NoFile: it is absolute, leads upwards, or is nothing that a file of ours is called.
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
        NoFile: there is none that may be read, or the way to it leads over a link.
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
        NoFile: there is none that may be read.
    """
    with opened(folder, path) as file:
        return _pread(file, 0, most)


def read_end(folder: Path, path: str, most: int) -> bytes:
    """Return the last `most` bytes of a file within `folder`.

    Raises:
        NoFile: there is none that may be read.
    """
    with opened(folder, path) as file:
        return _pread(file, max(0, os.fstat(file).st_size - most), most)


def read_part(folder: Path, path: str, start: int, most: int) -> tuple[bytes, int]:
    """Return up to `most` bytes from `start` on, and the file's size.

    Raises:
        NoFile: there is none that may be read.
    """
    with opened(folder, path) as file:
        return _pread(file, start, most), os.fstat(file).st_size


def size_of(folder: Path, path: str) -> int | None:
    """Return the size of a file within `folder`; None if there is none that may be read."""
    try:
        with opened(folder, path) as file:
            return os.fstat(file).st_size
    except NoFile:
        return None


def listed(folder: Path, most: int = MOST_LISTED) -> tuple[list[Listed], bool]:
    """Return the files within `folder`, by path, and whether there are more than are returned."""
    found: list[Listed] = []
    waiting = [""]
    while waiting and len(found) <= most:
        prefix = waiting.pop(0)
        with contextlib.suppress(OSError), os.scandir(folder / prefix) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                else:
                    found.append(_listed(path, entry))
                if len(found) > most:
                    break
    found.sort(key=lambda item: (item.path.count("/"), item.path))
    return found[:most], len(found) > most


def has_only_plain_metrics(folder: Path) -> bool:
    """Return whether every metrics file of a run is a regular file, so that reading cannot hang."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        named = (entry for entry in entries if entry.name.startswith(("metrics-", "summary.")))
        return all(entry.is_file(follow_symlinks=False) for entry in named)
    return False


def stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return something that differs once a run's metrics have changed."""
    found: list[tuple[str, int, int]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("metrics-"):
                status = entry.stat(follow_symlinks=False)
                found.append((entry.name, status.st_mtime_ns, status.st_size))
    return tuple(sorted(found))


def _listed(path: str, entry: "os.DirEntry[str]") -> Listed:
    with contextlib.suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return Listed(path, status.st_size, "file")
        kinds = ((stat.S_ISLNK, "link"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
        kind = next((name for is_it, name in kinds if is_it(status.st_mode)), "device")
        return Listed(path, None, kind)
    return Listed(path, None, "gone")


def _pread(file: int, start: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := os.pread(file, min(most, 1 << 20), start)):
        pieces.append(piece)
        start += len(piece)
        most -= len(piece)
    return b"".join(pieces)
