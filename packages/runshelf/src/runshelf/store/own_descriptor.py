"""A descriptor that the program around us may close.

A daemon closes all descriptors at its start, and the files that it opens next get their numbers:
what is then written to such a number ends up in a file of the daemon.
"""

import os
from typing import final


@final
class OwnDescriptor:
    """The descriptor of an open file, which is told from a later one of the same number.

    Args:
        number: the descriptor.

    Raises:
        OSError: it is not open.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._file = _file_of(number)

    def is_open(self) -> bool:
        """Return whether the number still is that of the file."""
        try:
            return _file_of(self.number) == self._file
        except OSError:
            return False

    def close(self) -> None:
        """Close the file, unless the program has closed it."""
        if self.is_open():
            os.close(self.number)


def _file_of(number: int) -> tuple[int, int]:
    """Return what tells the open file from all others."""
    found = os.fstat(number)
    return found.st_dev, found.st_ino
