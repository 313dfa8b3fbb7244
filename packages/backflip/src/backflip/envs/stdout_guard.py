"""Standard output, which an environment must leave open: a run prints on it after the last step."""

import contextlib
import errno
import os
import sys
from collections.abc import Generator


@contextlib.contextmanager
def stdout_kept_open() -> Generator[None]:
    """Watch code of an environment.

    Raises:
        ValueError: the code closed standard output, as `sys.stdout.close()` and `os.close(1)` do.
    """
    was_open = _is_open()
    yield
    if was_open and not _is_open():
        raise ValueError("standard output was closed; remove the call that closes it")


def _is_open() -> bool:
    """Return whether `sys.stdout` and the descriptor under it, if it has one, are open."""
    if sys.stdout is None or sys.stdout.closed:
        return False
    try:
        os.fstat(sys.stdout.fileno())
    except OSError as error:  # a stream without a descriptor raises one, too
        return error.errno != errno.EBADF
    return True
