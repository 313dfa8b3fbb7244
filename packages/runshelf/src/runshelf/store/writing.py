"""Writes files of a run safely, even if the folder comes from an untrusted source.

All changes of a run's folder are made here. Every part of a path is opened relative to the previous
part, without following links. A file is replaced by a new one, which is created under a name that
was removed before. A file is changed in place only if it is a regular file with a single name:
another name (a hard link) may be outside of the folder.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from runshelf.errors import DamagedFile
from runshelf.store.files import disk_errors
from runshelf.store.opening import (
    NoFile,
    checked_parts,
    not_regular,
    opened,
    opened_folder,
)

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


def replace_file(
    folder: Path,
    path: str,
    data: bytes,
    *,
    previous: str = "",
    mode: int = 0o666,
    synced: bool = True,
) -> None:
    """Replace a file atomically: a reader sees either the old content or all of `data`.

    Whatever has the file's name is replaced, a link included; its target does not change.

    Args:
        folder: the run's folder.
        path: the file, relative to `folder`.
        data: its new content.
        previous: the name that the replaced file gets, in the same folder; by default it is
            dropped.
        mode: the permissions of a new file, before the umask.
        synced: whether the file survives a power cut.

    Raises:
        UserFacingError: the disk is full or the file cannot be written; the old file is intact.
    """
    with disk_errors(folder / path), _at(folder, path) as (at, name):
        partial = partial_of(name)
        if previous and _is_between_renames(at, name, previous):
            # The partial file is complete and may be the only good one, so the rename is finished
            # before it is overwritten.
            _rename(at, partial, name)
        _write_new(at, partial, data, mode, synced)
        if previous and _is_regular(at, name):
            _rename(at, name, previous)
        _rename(at, partial, name)
        if synced:
            os.fsync(at)


def keep_file(folder: Path, path: str, data: bytes) -> None:
    """Write a file that is named by its content, unless it exists.

    Several processes may write the same file. It may be lost in a power cut.

    Raises:
        UserFacingError: the disk is full or the file cannot be written.
    """
    with disk_errors(folder / path), _at(folder, path) as (at, name):
        if _is_regular(at, name):
            return
        partial = partial_of(f"{name}.{os.getpid()}-{os.urandom(4).hex()}")
        _write_new(at, partial, data, 0o666, synced=False)
        _rename(at, partial, name)


def write_once(folder: Path, path: str, data: bytes, mode: int = 0o666) -> bool:
    """Write a file unless it exists; of several processes, also on several machines, one succeeds.

    A reader sees no file or all of `data`. The file survives a power cut.

    Returns:
        Whether this call has written the file.

    Raises:
        UserFacingError: the disk is full or the file cannot be written.
    """
    with disk_errors(folder / path), _at(folder, path) as (at, name):
        partial = partial_of(f"{name}.{os.getpid()}-{os.urandom(4).hex()}")
        _write_new(at, partial, data, mode, synced=True)
        try:
            os.link(partial, name, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
        except FileExistsError:
            # On a network file system, the answer to a link that was made may have been lost.
            return _status(at, partial).st_nlink == 2
        finally:
            os.unlink(partial, dir_fd=at)
        os.fsync(at)
        return True


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file at a path that the user chose: links to its folder are followed.

    Raises:
        UserFacingError: as `replace_file` does.
    """
    with disk_errors(path):
        folder = path.parent.resolve()
    replace_file(folder, path.name, data)


def partial_of(name: str) -> str:
    """Return the temporary name of a file that `replace_file` writes."""
    return f"{name}.partial"


def copy_file(source: Path, folder: Path, path: str) -> bool:
    """Copy a regular file of the folder `source` to the same path in `folder`.

    Returns:
        Whether a regular file was copied; False for a link or an unreadable file.

    Raises:
        UserFacingError: the disk is full, or the file cannot be written.
    """
    with suppress(NoFile), opened(source, path) as file:
        with disk_errors(folder / path), _at(folder, path) as (at, name):
            target = _create(at, name, os.O_WRONLY, 0o666)
            try:
                while chunk := os.read(file, _CHUNK):
                    write_all(target, chunk)
            finally:
                os.close(target)
        return True
    return False


def create(folder: Path, path: str, *, mode: int = 0o666) -> int:
    """Return a descriptor to read a new file and to append to it.

    Raises:
        UserFacingError: the file exists, or cannot be created.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
    with disk_errors(folder / path), _at(folder, path) as (at, name):
        return os.open(name, flags | _FLAGS, mode, dir_fd=at)


def open_in_place(folder: Path, path: str, *, appends: bool = False) -> int:
    """Return a descriptor to read and to change a file, which is created if it is missing.

    Args:
        folder: the run's folder.
        path: the file, relative to `folder`.
        appends: whether everything is written to the end.

    Raises:
        DamagedFile: it is not a regular file, or it has another name.
        UserFacingError: it cannot be opened.
    """
    flags = os.O_RDWR | os.O_CREAT | (os.O_APPEND if appends else 0)
    with disk_errors(folder / path), _at(folder, path) as (at, name):
        if _is_special(at, name):
            raise not_regular(folder / path)
        descriptor = os.open(name, flags | _FLAGS, 0o666, dir_fd=at)
    try:
        _refuse_unsafe(descriptor, folder / path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_to_lock(folder: Path, path: str) -> int | None:
    """Return a descriptor of a file to lock it, as a writer does; None if it does not exist.

    Raises:
        DamagedFile: it is not a regular file.
        UserFacingError: it cannot be opened.
    """
    with (
        disk_errors(folder / path),
        suppress(FileNotFoundError),
        _at(folder, path) as (at, name),
    ):
        if _is_special(at, name):
            raise not_regular(folder / path)
        return os.open(name, os.O_RDWR | _FLAGS, dir_fd=at)


def open_lines(folder: Path, path: str) -> int:
    """Return a descriptor to append to a file, with a shared lock that keeps `compact` away.

    While this waits for the lock, `compact` may replace the file; then the new file is opened.

    Raises:
        DamagedFile: it is not a regular file, or it has another name.
        UserFacingError: it cannot be opened.
    """
    while True:
        descriptor = open_in_place(folder, path, appends=True)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def make_folder(folder: Path, path: str, *, mode: int = 0o777, exist_ok: bool = True) -> Path:
    """Make a folder and the folders above it, and return it.

    Raises:
        UserFacingError: a part of the path is a link or a file, or the folder cannot be made.
    """
    parts = _parts(folder, path)
    for place, part in enumerate(parts):
        is_last = place == len(parts) - 1
        with disk_errors(folder / path), opened_folder(folder, parts[:place]) as at:
            try:
                os.mkdir(part, mode if is_last else 0o777, dir_fd=at)
            except FileExistsError:
                if is_last and not exist_ok:
                    raise
                if not stat.S_ISDIR(_status(at, part).st_mode):
                    raise DamagedFile(
                        f"`{folder.joinpath(*parts[: place + 1])}` is not a folder: remove it"
                    ) from None
    return folder / path


def remove_file(folder: Path, path: str) -> None:
    """Remove a file, or a link itself; nothing happens if there is none.

    Raises:
        UserFacingError: it cannot be removed.
    """
    with (
        disk_errors(folder / path),
        suppress(FileNotFoundError),
        _at(folder, path) as (at, name),
    ):
        os.unlink(name, dir_fd=at)


def rename_file(folder: Path, path: str, name: str) -> None:
    """Give a file another name in the same folder.

    Raises:
        UserFacingError: it cannot be renamed.
    """
    with disk_errors(folder / path), _at(folder, path) as (at, old):
        _rename(at, old, name)


def touch(folder: Path, path: str = "", moment: float | None = None) -> bool:
    """Set the modification time of the folder, or of a file in it; return whether that worked.

    Only of a regular file with a single name: anything else may be outside of the folder.
    """
    times = None if moment is None else (moment, moment)
    with suppress(OSError, NoFile, DamagedFile):
        if not path:
            with opened_folder(folder) as at:
                os.utime(at, times)
        else:
            with opened(folder, path) as file:
                _refuse_unsafe(file, folder / path)
                os.utime(file, times)
        return True
    return False


@contextmanager
def _at(folder: Path, path: str) -> Generator[tuple[int, str], None, None]:
    """Yield a descriptor of the folder that holds a file, and the file's name."""
    *above, name = _parts(folder, path)
    try:
        with opened_folder(folder, above) as at:
            yield at, name
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise DamagedFile(
                f"a folder of `{folder / path}` is a link or a file: links are not followed, "
                "make it a folder"
            ) from error
        raise


def _parts(folder: Path, path: str) -> list[str]:
    try:
        return checked_parts(path)
    except NoFile as error:
        raise DamagedFile(f"`{path!s:.80}` is not a path within `{folder}`") from error


def _is_between_renames(at: int, name: str, previous: str) -> bool:
    """Return whether a kill came between the two renames of `replace_file`."""
    there = _is_regular(at, previous) and _is_regular(at, partial_of(name))
    return there and not _exists(at, name)


def _write_new(at: int, name: str, data: bytes, mode: int, synced: bool) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=at)
    descriptor = _create(at, name, os.O_WRONLY, mode)
    try:
        write_all(descriptor, data)
        if synced:
            os.fsync(descriptor)
    except OSError:
        # A partial file is useless and may be what fills the disk.
        with suppress(OSError):
            os.unlink(name, dir_fd=at)
        raise
    finally:
        os.close(descriptor)


def _create(at: int, name: str, flags: int, mode: int) -> int:
    return os.open(name, flags | os.O_CREAT | os.O_EXCL | _FLAGS, mode, dir_fd=at)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes to an open file; one `os.write` may write only some."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _rename(at: int, old: str, new: str) -> None:
    os.replace(old, new, src_dir_fd=at, dst_dir_fd=at)


def _exists(at: int, name: str) -> bool:
    try:
        _status(at, name)
    except FileNotFoundError:
        return False
    return True


def _is_regular(at: int, name: str) -> bool:
    return _exists(at, name) and stat.S_ISREG(_status(at, name).st_mode)


def _is_special(at: int, name: str) -> bool:
    """Return whether a name is taken by a link, a pipe, a device or the like."""
    if not _exists(at, name):
        return False
    mode = _status(at, name).st_mode
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _status(at: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=at, follow_symlinks=False)


def _refuse_unsafe(descriptor: int, path: Path) -> None:
    _refuse(os.fstat(descriptor), path)


def _refuse(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise not_regular(path)
    if status.st_nlink > 1:
        raise DamagedFile(
            f"`{path}` has another name (a hard link), which would change with it: replace it by "
            f"a copy, with cp {path.name} copy && mv copy {path.name}"
        )
