"""Questions about the paths that users type, which may be the names of runs as well."""

import errno
import stat
from contextlib import suppress
from pathlib import Path

from runshelf.store.files import disk_errors

# What the system says where nothing can be. It takes no name of more than 255 bytes.
_NOTHING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})


def is_file(path: Path) -> bool:
    """Return whether `path` is a regular file, or a link to one.

    Raises:
        UserFacingError: it cannot be looked at.
    """
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder, or a link to one.

    Raises:
        UserFacingError: it cannot be looked at.
    """
    return stat.S_ISDIR(_mode(path))


def exists(path: Path) -> bool:
    """Return whether there is anything at `path`.

    Raises:
        UserFacingError: it cannot be looked at.
    """
    return _mode(path) != 0


def _mode(path: Path) -> int:
    """Return the kind and the permissions of what is at a path; 0 if nothing is."""
    with suppress(ValueError), disk_errors(path):  # a ValueError: a null byte
        try:
            return path.stat().st_mode
        except OSError as error:
            if error.errno not in _NOTHING:
                raise
    return 0
