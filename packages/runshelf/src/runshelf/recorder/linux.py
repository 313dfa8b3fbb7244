"""Linux calls that Python's standard library lacks: inotify, fallocate, subreapers.

On other systems each of these does nothing, and its callers have another way.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import final

_IN_MODIFY = 0x2
_IN_Q_OVERFLOW = 0x4000
_KEEP_SIZE, _PUNCH_HOLE = 0x1, 0x2
_PR_SET_CHILD_SUBREAPER = 36
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16

_is_linux = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)


@final
class Watch:
    """Reports which of some files were written to, in order.

    Several writes to one file, without a write to another between them, may be reported as one.
    """

    def __init__(self, paths: list[Path]) -> None:
        """Watch `paths`; they are reported by their place in the list.

        Raises:
            OSError: this system has no inotify, or no more of it for this user.
        """
        if not _is_linux:
            raise OSError("no inotify")
        self.descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._places: dict[int, int] = {}
        try:
            for place, path in enumerate(paths):
                name = os.fsencode(path)
                number = _checked(_libc.inotify_add_watch(self.descriptor, name, _IN_MODIFY))
                self._places[number] = place
        except OSError:
            self.close()
            raise

    def read(self) -> list[int]:
        """Return the places of the files written to since the last call, in order."""
        places: list[int] = []
        with suppress(BlockingIOError):
            while True:
                data = os.read(self.descriptor, _BUFFER)
                places += self._parse(data)
                if len(data) < _BUFFER:  # that was all; who prints without end adds to it for ever
                    break
        return places

    def close(self) -> None:
        """Watch no more."""
        os.close(self.descriptor)

    def _parse(self, data: bytes) -> list[int]:
        places: list[int] = []
        start = 0
        while start < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, start)
            start += _EVENT.size + length
            if mask & _IN_Q_OVERFLOW:  # the queue was full: it may have been any of them
                places += sorted(self._places.values())
            elif number in self._places:
                places.append(self._places[number])
        return places


def punch_hole(descriptor: int, start: int, end: int) -> None:
    """Free the disk space of a part of a file; reading it gives zeros."""
    _allocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, end)


def reserve(descriptor: int, start: int, end: int) -> None:
    """Reserve disk space for a part of a file, if there is any; its size stays."""
    _allocate(descriptor, _KEEP_SIZE, start, end)


def _allocate(descriptor: int, mode: int, start: int, end: int) -> None:
    if _is_linux:
        _libc.fallocate(descriptor, mode, ctypes.c_int64(start), ctypes.c_int64(end - start))


def adopt_orphans(adopt: bool) -> bool:
    """Make this process the parent of what its descendants leave behind, or no more.

    Returns:
        Whether the system does that.
    """
    return _is_linux and _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0) == 0


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
