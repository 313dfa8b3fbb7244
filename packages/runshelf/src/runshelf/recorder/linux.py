"""Linux calls that Python's standard library lacks: inotify, fallocate, subreapers.

On other systems they do nothing, or raise OSError, and the callers use a fallback.
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
    """Reports the writes to a list of files, in order.

    Successive writes to one file may be reported as one.
    """

    def __init__(self, paths: list[Path]) -> None:
        """Watch `paths`; reports name a file by its index in this list.

        Raises:
            OSError: the system has no inotify, or the user's limit is reached.
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
        """Return the indices of the files written to since the last call, in order."""
        places: list[int] = []
        with suppress(BlockingIOError):
            while True:
                data = os.read(self.descriptor, _BUFFER)
                places += self._parse(data)
                if len(data) < _BUFFER:  # else a program that prints without pause keeps us here
                    break
        return places

    def close(self) -> None:
        """Stop watching."""
        os.close(self.descriptor)

    def _parse(self, data: bytes) -> list[int]:
        places: list[int] = []
        start = 0
        while start < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, start)
            start += _EVENT.size + length
            if mask & _IN_Q_OVERFLOW:  # the queue was full: any file may have been written to
                places += sorted(self._places.values())
            elif number in self._places:
                places.append(self._places[number])
        return places


def punch_hole(descriptor: int, start: int, end: int) -> None:
    """Free the disk space of a range of a file, which then reads as zeros."""
    _allocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, end)


def reserve(descriptor: int, start: int, end: int) -> None:
    """Reserve disk space for a range of a file, if there is enough; keep the file's size."""
    _allocate(descriptor, _KEEP_SIZE, start, end)


def _allocate(descriptor: int, mode: int, start: int, end: int) -> None:
    if _is_linux:
        _libc.fallocate(descriptor, mode, ctypes.c_int64(start), ctypes.c_int64(end - start))


def adopt_orphans(adopt: bool) -> bool:
    """Make this process adopt orphaned descendants, or stop that; return whether it works."""
    return _is_linux and _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0) == 0


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
