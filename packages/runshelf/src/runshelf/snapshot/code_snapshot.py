"""Snapshots: the code of a run before its start, with each file stored as an object.

`code.json` lists every file with its hash, and everything left out with the reason. Limits prevent
a folder with a million files or a file of gigabytes from delaying the start.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast, final

from runshelf.errors import DamagedFile, UsageError
from runshelf.received_json import parse_json
from runshelf.snapshot.file_selection import Listing
from runshelf.snapshot.git_process import Repository
from runshelf.snapshot.object_store import NotAFileError, object_path, store
from runshelf.snapshot.secret_files import has_private_key, is_secret_file
from runshelf.store.files import disk_errors
from runshelf.store.opening import NoFile, read, read_part
from runshelf.store.writing import replace_file

CODE = "code.json"
MAY_HOLD_SECRETS = "may hold secrets"
_NAMED_AT_MOST = 1000
_SAID_AT_MOST = 3
_LARGEST_LIST = 64 << 20  # bytes of `code.json`, which may come from an untrusted source


@final
@dataclass(frozen=True)
class Limits:
    """The limits of a snapshot.

    Attributes:
        file_bytes: the maximum size of a file.
        total_bytes: the maximum total size.
        files: the maximum number of files.
        seconds: the approximate maximum duration.
    """

    file_bytes: int = 50_000_000
    total_bytes: int = 500_000_000
    files: int = 20_000
    seconds: float = 8.0


@final
@dataclass(frozen=True)
class CodeFile:
    """A file of a snapshot.

    Attributes:
        path: relative to the root, with `/`; non-UTF-8 bytes are surrogate escapes.
        sha256: the hash of its bytes; empty for a link.
        bytes: its size.
        mode: its permissions.
        link: the target if it is a symbolic link.
    """

    path: str
    sha256: str
    bytes: int
    mode: int
    link: str | None = None


@final
@dataclass(frozen=True)
class LeftOut:
    """A file or folder that is not in a snapshot.

    Attributes:
        path: relative to the root; or a description, such as `the rest`.
        why: the reason.
        bytes: its size, if that is the reason.
    """

    path: str
    why: str
    bytes: int | None = None


@final
@dataclass(frozen=True)
class Snapshot:
    """The content of `code.json`.

    Attributes:
        root: the root folder of the code.
        cwd: the working folder, relative to the root.
        files: the archived files, sorted by path.
        left_out: everything else.
    """

    root: str
    cwd: str
    files: tuple[CodeFile, ...]
    left_out: tuple[LeftOut, ...]


def take_snapshot(home: Path, cwd: Path, repository: Repository | None, limits: Limits) -> Snapshot:
    """Store the code around `cwd` in the objects of `home`.

    Args:
        home: the home of the run.
        cwd: the working folder; it is the root if there is no repository.
        repository: the repository that contains `cwd`, if any; its root is the root.
        limits: the limits of the snapshot.
    """
    root = repository.root if repository else cwd
    taking = _Taking(home, root, limits)
    listing = Listing(root, home, taking.deadline, taking.leave_out)
    for path in listing.paths(repository):
        if not taking.take(path):
            break
    taking.count_the_rest()
    relative = os.path.relpath(cwd.resolve(), root.resolve())
    files = tuple(sorted(taking.files, key=lambda file: file.path))
    return Snapshot(str(root), relative, files, tuple(taking.left_out))


def write_snapshot(folder: Path, snapshot: Snapshot, limits: Limits) -> None:
    """Write `code.json` into a run's folder."""
    files = [_without_nothing(asdict(file)) for file in snapshot.files]
    left_out = [_without_nothing(asdict(left)) for left in snapshot.left_out]
    fields = {"root": snapshot.root, "cwd": snapshot.cwd, "limits": asdict(limits)}
    lists = (
        f'"{name}": [\n' + ",\n".join(f"  {json.dumps(item)}" for item in items) + "\n]"
        for name, items in (("left_out", left_out), ("files", files))
    )
    text = json.dumps(fields)[:-1] + ",\n" + ",\n".join(lists) + "}\n"
    replace_file(folder, CODE, text.encode())


def read_snapshot(folder: Path) -> Snapshot:
    """Return the snapshot of the run in `folder`.

    Raises:
        UsageError: the run has no snapshot.
        DamagedFile: `code.json` is invalid, or a path in it leads out of the root.
    """
    path = folder / CODE
    try:
        text = read(folder.resolve(), CODE, _LARGEST_LIST + 1)
    except NoFile as error:
        message = f"run `{folder.name}` has no `{CODE}`: its code was not archived"
        raise UsageError(message) from error
    if len(text) > _LARGEST_LIST:
        raise DamagedFile(f"`{path}` has more than {_LARGEST_LIST:_} bytes, so it is not valid")
    try:
        fields: dict[str, Any] = parse_json(text)
        return Snapshot(
            str(fields["root"]),
            _inside(fields["cwd"], folder=True),
            tuple(_file_of(entry) for entry in fields["files"]),
            tuple(
                LeftOut(str(e["path"]), str(e["why"]), e.get("bytes")) for e in fields["left_out"]
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(f"`{path}` is damaged ({error}): restore it from a copy") from error


def materialise(home: Path, run: Path, target: Path) -> Snapshot:
    """Write the code of the run in `run` into a new folder `target`; return its snapshot.

    Nothing is written through a link or outside of `target`. Links are created last.

    Raises:
        UsageError: the run has no snapshot, or `target` exists.
        DamagedFile: `code.json` or an object is damaged.
        UserFacingError: the disk is full.
    """
    snapshot = read_snapshot(run)
    with disk_errors(target):
        target.mkdir(parents=True, mode=0o700)
        root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for file in sorted(snapshot.files, key=lambda file: file.link is not None):
                _put(home, root, file)
            with _folder_below(root, PurePosixPath(snapshot.cwd)):
                pass  # creates the working folder, even if it holds no file
        finally:
            os.close(root)
    return snapshot


def read_object(home: Path, file: CodeFile) -> bytes:
    """Return the bytes of a file of a snapshot.

    Raises:
        DamagedFile: the object is missing or damaged.
    """
    path = object_path(home, file.sha256)
    try:
        # Reads at most the expected size: a damaged object may be of any size.
        data, size = read_part(path.parent, path.name, 0, file.bytes)
    except NoFile as error:
        message = f"`{file.path}` is missing in the archive (`{path}`: {error})"
        raise DamagedFile(message) from error
    if size != file.bytes or hashlib.sha256(data).hexdigest() != file.sha256:
        raise DamagedFile(
            f"`{file.path}` is damaged: `{path}` should have {file.bytes} bytes with the SHA-256 "
            "in its name: restore it from a copy, or record a run where the file is unchanged, "
            "which replaces the object"
        )
    return data


@dataclass
class _Taking:
    """A snapshot while it is taken."""

    home: Path
    root: Path
    limits: Limits
    files: list[CodeFile] = field(default_factory=list[CodeFile])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    total_bytes: int = 0
    unnamed: int = 0
    folders: dict[bytes, bool] = field(default_factory=dict[bytes, bool])

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.limits.seconds

    def take(self, path: bytes) -> bool:
        """Store one file; return whether there is time for more."""
        if time.monotonic() > self.deadline:
            self.leave_out(b"the rest", f"the snapshot took longer than {self.limits.seconds:g} s")
            return False
        if is_secret_file(path):
            self.leave_out(path, MAY_HOLD_SECRETS)
        elif not self._is_inside(path):
            self.leave_out(path, "leads out of the folder")
        elif len(self.files) >= self.limits.files:
            self.leave_out(path, f"more than {self.limits.files:_} files")
        else:
            self._keep(path)
        return True

    def leave_out(self, path: bytes, why: str, size: int | None = None) -> None:
        """Record that something is left out."""
        if len(self.left_out) < _NAMED_AT_MOST:
            self.left_out.append(LeftOut(os.fsdecode(path), why, size))
        else:
            self.unnamed += 1

    def count_the_rest(self) -> None:
        """Record the number of left-out files that are not listed."""
        if self.unnamed:
            self.left_out.append(LeftOut(f"{self.unnamed:_} more", "not listed"))

    def _is_inside(self, path: bytes) -> bool:
        """Return whether a path of git's index stays below the root, also through links."""
        folder = os.path.dirname(path)  # noqa: PTH120  (bytes)
        if folder not in self.folders:
            real = os.path.realpath(os.path.join(os.fsencode(self.root), folder))  # noqa: PTH118
            root = os.path.realpath(os.fsencode(self.root))
            inside = real == root or real.startswith(root.rstrip(b"/") + b"/")
            self.folders[folder] = inside and b".." not in path.split(b"/")
        return self.folders[folder]

    def _keep(self, path: bytes) -> None:
        absolute = self.root / os.fsdecode(path)
        try:
            status = absolute.lstat()
            if stat.S_ISLNK(status.st_mode):
                link = os.fsdecode(os.readlink(os.fsencode(absolute)))  # noqa: PTH115  (bytes)
                self.files.append(CodeFile(os.fsdecode(path), "", 0, 0o777, link))
            elif stat.S_ISREG(status.st_mode):
                self._keep_regular(path, absolute, status.st_size)
            else:
                raise NotAFileError
        except (FileNotFoundError, NotADirectoryError):
            pass  # tracked and deleted
        except NotAFileError:
            self.leave_out(path, "not a file, link or folder")
        except OSError as error:
            self.leave_out(path, str(error.strerror))

    def _keep_regular(self, path: bytes, absolute: Path, size: int) -> None:
        if size > self.limits.file_bytes:
            self.leave_out(path, f"larger than {self.limits.file_bytes / 1e6:g} MB", size)
        elif self.total_bytes + size > self.limits.total_bytes:
            most = f"{self.limits.total_bytes / 1e6:g} MB"
            self.leave_out(path, f"all files have more than {most}", size)
        elif has_private_key(absolute, size):
            self.leave_out(path, MAY_HOLD_SECRETS)
        else:
            stored = store(self.home, absolute)
            self.total_bytes += stored.bytes
            self.files.append(CodeFile(os.fsdecode(path), stored.sha256, stored.bytes, stored.mode))


def say_left_out(snapshot: Snapshot, say: Callable[[str], None]) -> None:
    """Report what a snapshot leaves out: the first files per reason, and their number."""
    reasons: dict[str, list[LeftOut]] = {}
    for left in snapshot.left_out:
        reasons.setdefault(left.why, []).append(left)
    for why, items in reasons.items():
        named = ", ".join(f"`{item.path}`" for item in items[:_SAID_AT_MOST])
        more = len(items) - _SAID_AT_MOST
        rest = f" and {more:_} more (all in {CODE})" if more > 0 else ""
        say(f"not in the snapshot: {named}{rest}: {why}")


def _without_nothing(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _file_of(entry: Any) -> CodeFile:
    """Return the file of an entry of `code.json`.

    Raises:
        ValueError: the entry is invalid, or its path leads out of the root.
    """
    fields = cast("dict[str, Any]", entry)
    link = fields.get("link")
    sha256, size, mode = fields["sha256"], fields["bytes"], fields["mode"]
    if not (isinstance(sha256, str) and type(size) is int and type(mode) is int and size >= 0):
        raise ValueError(f"the entry of `{fields.get('path')!s:.80}` has a wrong type")
    if link is not None and (not isinstance(link, str) or not link or "\0" in link):
        raise ValueError("a link has an invalid target")
    # Without setuid and setgid bits.
    return CodeFile(_inside(fields["path"]), sha256, size, mode & 0o777, link)


def _inside(path: Any, folder: bool = False) -> str:
    """Return a relative path after checking that it stays inside its root.

    Raises:
        ValueError: the path is invalid or leads out of the root.
    """
    if not isinstance(path, str) or "\0" in path or not path:
        raise ValueError(f"`{path!s:.80}` is not a path")
    parts = path.split("/")
    if path == "." and folder:
        return path
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"path `{path:.80}` leads out of the root")
    return path


def _put(home: Path, root: int, file: CodeFile) -> None:
    """Write one file or link below the folder with the descriptor `root`."""
    path = PurePosixPath(file.path)
    with _folder_below(root, path.parent) as folder:
        if file.link is not None:
            os.symlink(file.link, path.name, dir_fd=folder)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(path.name, flags, 0o600, dir_fd=folder)
        with os.fdopen(target, "wb") as out:
            out.write(read_object(home, file))
            os.fchmod(out.fileno(), file.mode | 0o600)


@contextmanager
def _folder_below(root: int, path: PurePosixPath) -> Generator[int, None, None]:
    """Yield a descriptor of a folder below `root`, created if missing; no link is followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.dup(root)
    try:
        for part in path.parts:
            try:
                below = os.open(part, flags, dir_fd=descriptor)
            except FileNotFoundError:
                os.mkdir(part, 0o755, dir_fd=descriptor)
                below = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
