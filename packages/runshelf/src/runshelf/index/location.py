"""Where the index of a home is kept: in its `runs/`, or in the cache folder if that is impossible.

SQLite's write-ahead log needs shared memory, which network file systems do not provide.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from runshelf.index.database import APPLICATION
from runshelf.store.home import INDEX, RUNS, old_shared, shared
from runshelf.store.opening import NoFile, read

NETWORK_FILE_SYSTEMS = frozenset(
    (
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "davfs",
        "fuse.ceph",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "panfs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "virtiofs",
        "wekafs",
    )
)
_MOUNTS = Path("/proc/self/mounts")
_APPLICATION_AT = 68  # in the header of an SQLite file


def places(home: Path) -> list[Path]:
    """Return the possible files for the index of `home`, best first."""
    cached = cache_folder(home) / INDEX
    # `runs/` may be a link to another disk.
    return [cached] if is_on_network(home / RUNS) else [shared(home, INDEX), cached]


def old_index_files(home: Path) -> list[Path]:
    """Return the files of an index that a version before 2026-11-23 made beside `runs/`."""
    path = old_shared(home, INDEX)
    with contextlib.suppress(OSError, NoFile):
        header = read(path.parent, path.name, _APPLICATION_AT + 4)
        if header[_APPLICATION_AT:] == APPLICATION.to_bytes(4, "big"):
            return [file for file in path.parent.glob(f"{INDEX}*") if file.is_file()]
    return []


def is_on_network(home: Path, mounts: Path = _MOUNTS) -> bool:
    """Return whether `home` is on a network file system; False if unknown."""
    with contextlib.suppress(OSError):
        return (
            _file_system(home.resolve(), mounts.read_text(errors="replace")) in NETWORK_FILE_SYSTEMS
        )
    return False


def cache_folder(home: Path) -> Path:
    """Return the user's cache folder for `home`; it may not exist."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore relative paths.
    base = Path(root) if Path(root).is_absolute() else Path.home() / ".cache"
    digest = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()
    return base / "runshelf" / digest[:32]


def _file_system(path: Path, mounts: str) -> str:
    """Return the type of the file system that holds `path`, from the deepest mount above it."""
    found, depth = "", -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescaped(fields[1]))
        if len(point.parts) >= depth and (point == path or point in path.parents):
            found, depth = fields[2], len(point.parts)
    return found


def _unescaped(field: str) -> str:
    """Return a path without the octal escapes of the mount table."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escape, character)
    return field
