"""The seal of an index: a checksum of its file, kept while no process has it open.

SQLite notices most damage only when it reads the damaged place, and changed numbers never. A file
that differs from its seal was changed by something else, and is not used.
"""

import contextlib
import os
import zlib
from pathlib import Path

from runshelf.store.opening import NoFile, read

_ENDING = ".seal"
_DIGITS = 8
_BLOCK = 1 << 20


def seal(path: Path) -> None:
    """Write the seal of an index that no process has open.

    Raises:
        OSError: it cannot be written.
    """
    sealed = _seal_of(path)
    sealed.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(sealed, flags, 0o600)
    try:
        os.write(descriptor, _checksum(path))
    finally:
        os.close(descriptor)


def break_seal(path: Path) -> bool:
    """Remove the seal of an index; return whether the file is as it was sealed, if it was.

    Raises:
        OSError: the seal cannot be removed.
    """
    sealed, expected = _seal_of(path), b""
    with contextlib.suppress(NoFile):
        expected = read(sealed.parent, sealed.name, _DIGITS + 1)
    is_whole = len(expected) != _DIGITS or expected == _checksum(path)
    sealed.unlink(missing_ok=True)
    return is_whole


def _seal_of(path: Path) -> Path:
    return path.with_name(path.name + _ENDING)


def _checksum(path: Path) -> bytes:
    found = 0
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return f"{found:0{_DIGITS}x}".encode()
