"""Walks and removes folder trees of any depth, without following links.

A tree may be deeper than a path may be long, and than a process may have open files. So nothing
here is recursive, and at most three folders are open at a time.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_PATH = 4000  # in bytes; Linux allows 4096, macOS fewer


def files_below(folder: Path) -> Generator[Path, None, None]:
    """Yield everything below a folder but folders: files, links, pipes.

    Folders that cannot be read, and whatever is too deep to have a path, are left out.
    """
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield Path(entry.path)
                elif len(os.fsencode(entry.path)) < _LONGEST_PATH:
                    waiting.append(Path(entry.path))


def tree_bytes(folder: Path) -> int:
    """Return the disk usage of everything below a folder; unreadable folders count as empty."""
    try:
        descriptor = os.open(folder, _FLAGS)
    except OSError:
        return 0
    try:
        total, folders = _content(descriptor)
        levels = [folders]  # of each folder down to the open one: its folders still to be entered
        while levels:
            name = levels[-1].pop() if levels[-1] else ".."
            with suppress(OSError):
                descriptor = _moved(descriptor, name)
                if name != "..":
                    size, folders = _content(descriptor)
                    total += size
                    levels.append(folders)
            if name == "..":
                levels.pop()
        return total
    finally:
        os.close(descriptor)


def remove_tree(folder: Path) -> None:
    """Remove a folder and its content, including write-protected folders.

    Folders are moved up to the top one, so that depth does not matter.

    Raises:
        OSError: something cannot be removed.
    """
    parent = os.open(folder.parent, _FLAGS & ~os.O_NOFOLLOW)
    try:
        if not os.access(".", os.W_OK, dir_fd=parent):  # else it would be emptied and stay
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        top = _open_to_empty(parent, folder.name)
        try:
            while names := os.listdir(top):  # noqa: PTH208  (of a descriptor)
                for name in names:
                    with suppress(FileNotFoundError):  # another process removes it, too
                        _remove(top, name)
        finally:
            os.close(top)
        os.rmdir(folder.name, dir_fd=parent)
    finally:
        os.close(parent)


def _content(descriptor: int) -> tuple[int, list[str]]:
    """Return the disk usage of the entries of an open folder, and the names of its folders."""
    size, folders = 0, list[str]()
    with suppress(OSError), os.scandir(descriptor) as entries:
        for entry in entries:
            with suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    return size, folders


def _moved(descriptor: int, name: str) -> int:
    """Open a folder in an open one, or the one above it (`..`), and close the open one."""
    other = os.open(name, _FLAGS, dir_fd=descriptor)
    os.close(descriptor)
    return other


def _remove(top: int, name: str) -> None:
    """Remove an entry of the folder `top`; the folders in it are moved into `top`."""
    if not _is_folder(top, name):
        os.unlink(name, dir_fd=top)
        return
    below = _open_to_empty(top, name)
    try:
        for inner in os.listdir(below):  # noqa: PTH208
            if _is_folder(below, inner):
                _make_writable(below, inner)  # moving a folder changes its entry `..`
                os.rename(inner, secrets.token_hex(16), src_dir_fd=below, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=below)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=top)


def _open_to_empty(at: int, name: str) -> int:
    """Return a descriptor of a folder, after making it readable and writable."""
    if _is_folder(at, name):
        _make_writable(at, name)
    return os.open(name, _FLAGS, dir_fd=at)


def _is_folder(at: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def _make_writable(at: int, name: str) -> None:
    mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, stat.S_IRWXU, dir_fd=at)
