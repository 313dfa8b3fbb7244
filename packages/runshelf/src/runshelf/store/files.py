"""Atomic writes, and one-line messages for disk errors. Uses only the standard library."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from runshelf.errors import UserFacingError

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_whole(path: Path, data: bytes, *, previous: Path | None = None) -> None:
    """Replace a file atomically: a reader sees either the old content or all of `data`.

    Args:
        path: the file to replace.
        data: its new content.
        previous: where to keep the replaced file; by default it is dropped.

    Raises:
        UserFacingError: the disk is full or the file cannot be written; the old file is intact.
    """
    partial = partial_of(path)
    with disk_errors(path):
        if previous is not None and previous.exists() and not path.exists() and partial.exists():
            # A kill came between the two renames below. The partial file is complete and may be
            # the only good one, so the rename is finished before it is overwritten.
            partial.replace(path)
        _write_and_sync(partial, data)
        if previous is not None and path.exists():
            path.replace(previous)
        partial.replace(path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that its file names survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Generator[None, None, None]:
    """Turn an `OSError` inside the block into a one-line error that names `path`.

    Raises:
        UserFacingError: instead of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise UserFacingError(disk_full(path)) from error
        reason = error.strerror or str(error)
        raise UserFacingError(f"cannot read or write `{path}`: {reason}") from error


def is_disk_full(error: OSError) -> bool:
    """Return whether `error` means that the disk or the quota is full."""
    return error.errno in _DISK_FULL


def disk_full(path: Path) -> str:
    """Return the message for a disk that is too full to write `path`."""
    return (
        f"no space left on the disk (or in the quota) to write `{path}`: everything saved before "
        "is intact; free some space and resume"
    )


def partial_of(path: Path) -> Path:
    """Return the temporary file that `write_whole` renames to `path`."""
    return path.with_name(f"{path.name}.partial")


def _write_and_sync(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        # A partial file is useless and may be what fills the disk.
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(descriptor)
