"""Check that environments leave standard output open, because a run prints its result there."""

import contextlib
import errno
import os
import sys
from collections.abc import Generator


@contextlib.contextmanager
def stdout_kept_open() -> Generator[None]:
    """Run code of an environment and check standard output afterwards.

    Raises:
        ValueError: the code closed standard output, with `sys.stdout.close()` or `os.close(1)`.
    """
    was_open = _is_open()
    yield
    if was_open and not _is_open():
        raise ValueError("standard output was closed; remove the call that closes it")


def _is_open() -> bool:
    """Return whether `sys.stdout` and its file descriptor, if any, are open."""
    if sys.stdout is None or sys.stdout.closed:
        return False
    try:
        os.fstat(sys.stdout.fileno())
    except OSError as error:  # also raised by streams without a descriptor
        return error.errno != errno.EBADF
    return True
