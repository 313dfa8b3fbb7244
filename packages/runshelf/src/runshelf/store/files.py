"""One-line messages for disk errors."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from runshelf.errors import UserFacingError

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


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
