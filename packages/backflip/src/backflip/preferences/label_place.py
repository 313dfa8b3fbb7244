"""Checks the files of a label store before SQLite opens them. Needs no JAX.

SQLite follows links, and creates what is missing. A run folder may come from another person, and a
label file that is gone must not be replaced by an empty one.
"""

import os
import stat
from pathlib import Path

from runshelf.errors import DamagedFile

_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite opens, by the end of its name


def refuse_links(path: Path) -> None:
    """Refuse a label file if SQLite would write elsewhere, or wait for another process.

    Raises:
        DamagedFile: the file, or one that SQLite keeps beside it, is not a regular file, or has a
            second name.
    """
    for end in _BESIDE:
        file = path.with_name(path.name + end)
        what = _unusual(file)
        if what:
            raise DamagedFile(
                f"`{file}` is {what}: labels are kept in a regular file with one name, so put a "
                "copy of the file in its place"
            )


def refuse_missing(path: Path) -> None:
    """Refuse a label file that is gone, or that is empty; nothing is changed.

    Raises:
        DamagedFile: the message says how to go on.
    """
    if not os.path.lexists(path):
        raise lost(path, "is missing")
    if path.stat().st_size == 0:
        raise lost(path, "is empty")


def lost(path: Path, what: str) -> DamagedFile:
    """Return the error for a label file of which nothing is left."""
    return DamagedFile(
        f"`{path}` {what}: the labels of this run are lost; restore `{path.name}`, and "
        f"`{path.name}-wal` if there is one, from a copy, or start a new run"
    )


def damaged(path: Path, what: str) -> DamagedFile:
    """Return the error for a damaged label file."""
    one_line = " ".join(what.split())
    return DamagedFile(
        f"`{path}` is damaged ({one_line}): restore it from a copy, or recover the rest with "
        f"`sqlite3 {path.name} .recover`"
    )


def _unusual(file: Path) -> str:
    """Return what a file is, if it is not a regular file with one name; empty if it is missing."""
    try:
        found = file.lstat()
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    if stat.S_ISDIR(found.st_mode):
        return "a folder"
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    return "a file with a second name (a hard link)" if found.st_nlink > 1 else ""
