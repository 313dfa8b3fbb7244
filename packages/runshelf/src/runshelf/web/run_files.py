"""Lists and reads the files of a run's folder without following links."""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar, final

from runshelf.errors import UserFacingError

T = TypeVar("T")

MOST_LISTED = 2_000


@final
class Listed(NamedTuple):
    """A file in a run's folder.

    Attributes:
        path: relative to the folder, parts joined by `/`.
        size: in bytes; None for anything but a regular file.
        kind: `file`, `link`, `pipe`, `socket`, `device` or `gone`.
    """

    path: str
    size: int | None
    kind: str


def listed(folder: Path, most: int = MOST_LISTED) -> tuple[list[Listed], bool]:
    """Return at most `most` files below `folder`, by path, and whether there are more."""
    found: list[Listed] = []
    queue = [""]
    while queue and len(found) <= most:
        prefix = queue.pop(0)
        with contextlib.suppress(OSError), os.scandir(folder / prefix) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    queue.append(f"{path}/")
                else:
                    found.append(_listed(path, entry))
                if len(found) > most:
                    break
    found.sort(key=lambda item: (item.path.count("/"), item.path))
    return found[:most], len(found) > most


def has_only_plain_metrics(folder: Path) -> bool:
    """Return whether all metrics files of a run are regular files, so that reading cannot block."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        named = (entry for entry in entries if entry.name.startswith(("metrics-", "summary.")))
        return all(entry.is_file(follow_symlinks=False) for entry in named)
    return False


def read_metrics(folder: Path, read: Callable[[Path], T], default: T) -> T:
    """Return `read(folder)`, or `default` if the metrics of the run cannot be read."""
    if not has_only_plain_metrics(folder):
        return default
    try:
        return read(folder)
    except UserFacingError:
        return default


def _listed(path: str, entry: "os.DirEntry[str]") -> Listed:
    with contextlib.suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return Listed(path, status.st_size, "file")
        kinds = ((stat.S_ISLNK, "link"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
        kind = next((name for matches, name in kinds if matches(status.st_mode)), "device")
        return Listed(path, None, kind)
    return Listed(path, None, "gone")
