"""Files written whole or not at all, and disk errors as one line.

Nothing here needs more than the standard library.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from runshelf.errors import UserFacingError

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_whole(path: Path, data: bytes, *, previous: Path | None = None) -> None:
    """Write `data` to `path` so that a reader finds either all of it or what was there before.

    Args:
        path: the file to replace.
        data: its new content.
        previous: where to keep the replaced file, if at all.

    Raises:
        UserFacingError: the disk is full or the file cannot be written; what was there is intact.
    """
    partial = partial_of(path)
    with disk_errors(path):
        if previous is not None and previous.exists() and not path.exists() and partial.exists():
            # A kill fell between the two renames below, so this partial one is complete, and it
            # may be the only good one: finish the rename before overwriting anything.
            partial.replace(path)
        _write_and_sync(partial, data)
        if previous is not None and path.exists():
            path.replace(previous)
        partial.replace(path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Generator[None, None, None]:
    """Turn an `OSError` inside the block into one line that names `path`.

    Raises:
        UserFacingError: in place of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise UserFacingError(disk_full(path)) from error
        reason = error.strerror or str(error)
        raise UserFacingError(f"cannot read or write `{path}`: {reason}") from error


def is_disk_full(error: OSError) -> bool:
    """Return whether `error` says that there is no more room on the disk or in the quota."""
    return error.errno in _DISK_FULL


def disk_full(path: Path) -> str:
    """Return the message for a disk that had no room for `path`."""
    return (
        f"no space left on the disk (or in the quota) to write `{path}`: what was saved before is "
        "intact; free some space and resume"
    )


def partial_of(path: Path) -> Path:
    """Return the name that `write_whole` writes under before it renames to `path`."""
    return path.with_name(f"{path.name}.partial")


def _write_and_sync(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        # Half a file is worth nothing and may be what fills the disk.
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(descriptor)
