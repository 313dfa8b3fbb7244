"""Objects: files named by their SHA-256, written once and shared by all runs of a home.

An object is written under a temporary name and renamed, so that readers never see a partial object
and concurrent writers do not conflict.
"""

import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import DamagedFile
from runshelf.store.files import disk_errors
from runshelf.store.home import OBJECTS, has_runs, make_shared, old_shared, shared
from runshelf.store.writing import write_all

_CHUNK = 1 << 20
_HASH = re.compile("[0-9a-f]{64}")


class NotAFileError(Exception):
    """The path is not a regular file."""


@final
class Stored(NamedTuple):
    """A stored file.

    Attributes:
        sha256: the hash of the stored bytes.
        bytes: their number.
        mode: the file's permissions.
    """

    sha256: str
    bytes: int
    mode: int


def object_path(home: Path, sha256: str) -> Path:
    """Return the path of the object with a hash; if there is none, where it would be written.

    Raises:
        DamagedFile: `sha256` is not a hash.
    """
    if not _HASH.fullmatch(sha256):
        raise DamagedFile(f"`{sha256:.80}` is not a SHA-256: the list of files is damaged")
    path = _own_path(home, sha256)
    old = old_shared(home, OBJECTS) / "sha256" / sha256[:2] / sha256
    return old if os.path.lexists(old) and not os.path.lexists(path) else path


def store(home: Path, path: Path) -> Stored:
    """Store the file at `path`, without following links.

    Raises:
        NotAFileError: it is not a regular file.
        OSError: it cannot be read, or the object cannot be written.
    """
    with _opened(path) as (descriptor, status):
        small = os.read(descriptor, _CHUNK) if status.st_size < _CHUNK else None
        if small is not None and len(small) < _CHUNK:
            sha256, size = _store_bytes(home, small), len(small)
        else:
            sha256, size = _store_large(home, descriptor)
        return Stored(sha256, size, stat.S_IMODE(status.st_mode))


def hash_file(path: Path) -> tuple[str, int]:
    """Return the SHA-256 and the size of a file, without following links.

    Raises:
        NotAFileError: it is not a regular file.
        OSError: it cannot be read.
    """
    with _opened(path) as (descriptor, _):
        return _copy(descriptor, None)


@contextmanager
def _opened(path: Path) -> Generator[tuple[int, os.stat_result], None, None]:
    """Yield a descriptor of a regular file, and its status."""
    # O_NONBLOCK: opening a pipe would otherwise wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFileError(str(path))
        yield descriptor, status
    finally:
        os.close(descriptor)


def _own_path(home: Path, sha256: str) -> Path:
    """Return where the object with a hash is written."""
    return shared(home, OBJECTS) / "sha256" / sha256[:2] / sha256


def _store_bytes(home: Path, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    if not _is_there(object_path(home, sha256), sha256, len(data)):
        target = _own_path(home, sha256)
        with _partial(target.parent) as (descriptor, partial):
            write_all(descriptor, data)
            _finish(descriptor, partial, target)
    return sha256


def _store_large(home: Path, source: int) -> tuple[str, int]:
    """Store a large file; if its object exists, the file is only read."""
    sha256, size = _copy(source, None)
    if _is_there(object_path(home, sha256), sha256, size):
        return sha256, size
    with _partial(shared(home, OBJECTS) / "sha256") as (descriptor, partial):
        # Hashed again, since the file may have changed: the hash is of the bytes that are stored.
        sha256, size = _copy(source, descriptor)
        _finish(descriptor, partial, _own_path(home, sha256))
    return sha256, size


def _copy(source: int, target: int | None) -> tuple[str, int]:
    os.lseek(source, 0, os.SEEK_SET)
    digest, size = hashlib.sha256(), 0
    while chunk := os.read(source, _CHUNK):
        digest.update(chunk)
        size += len(chunk)
        if target is not None:
            write_all(target, chunk)
    return digest.hexdigest(), size


def _is_there(target: Path, sha256: str, size: int) -> bool:
    """Return whether the object exists and is intact."""
    with suppress(OSError, NotAFileError):
        return target.lstat().st_size == size and hash_file(target) == (sha256, size)
    return False


@contextmanager
def snapshot_taken(home: Path) -> Generator[None, None, None]:
    """Prevent the removal of objects of `home` while a snapshot is taken."""
    with _locked(_locked_folder(home), fcntl.LOCK_SH):
        yield


@contextmanager
def no_snapshot_taken(home: Path) -> Generator[None, None, None]:
    """Wait until no snapshot is being taken, and block new ones until the block ends."""
    if not has_runs(home) and not old_shared(home, OBJECTS).is_dir():
        yield
        return
    with _locked(_locked_folder(home), fcntl.LOCK_EX):
        yield


def _locked_folder(home: Path) -> Path:
    with disk_errors(shared(home, OBJECTS)):
        return make_shared(home, f"{OBJECTS}/sha256")


@contextmanager
def _locked(folder: Path, kind: int) -> Generator[None, None, None]:
    with disk_errors(folder):
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _partial(folder: Path) -> Generator[tuple[int, Path], None, None]:
    """Yield a new file in `folder`, created if missing; remove the file unless it was renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".partial-{os.getpid()}-{secrets.token_hex(6)}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor, path
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def _finish(descriptor: int, partial: Path, target: Path) -> None:
    os.fchmod(descriptor, 0o444)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial.replace(target)
