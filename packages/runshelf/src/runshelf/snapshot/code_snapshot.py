"""Snapshots: the code of a run as it was before the start, file by file, in objects.

`code.json` names every file with its hash, and everything that was left out with the reason.
Limits keep a folder with a million files or a file of gigabytes from holding up the start.
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
from runshelf.snapshot.file_selection import Listing, is_secret_file
from runshelf.snapshot.git import Repository
from runshelf.snapshot.object_store import NotAFileError, object_path, store
from runshelf.store.files import disk_errors, write_whole
from runshelf.store.opening import NoFile, read, read_part

CODE = "code.json"
_NAMED_AT_MOST = 1000
_SAID_AT_MOST = 3
_LARGEST_LIST = 64 << 20  # of a code.json that somebody else wrote


@final
@dataclass(frozen=True)
class Limits:
    """How much a snapshot may take.

    Attributes:
        file_bytes: of one file.
        total_bytes: of all files.
        files: how many.
        seconds: how long it may take, about.
    """

    file_bytes: int = 50_000_000
    total_bytes: int = 500_000_000
    files: int = 20_000
    seconds: float = 8.0


@final
@dataclass(frozen=True)
class CodeFile:
    """One file of a snapshot.

    Attributes:
        path: relative to the root, with `/`; text that holds any bytes (surrogate escapes).
        sha256: of its bytes; empty for a link.
        bytes: how many.
        mode: its permissions.
        link: what it points at, if it is a symbolic link.
    """

    path: str
    sha256: str
    bytes: int
    mode: int
    link: str | None = None


@final
@dataclass(frozen=True)
class LeftOut:
    """Something that is not in a snapshot.

    Attributes:
        path: relative to the root, or what it is of.
        why: the reason, in a few words.
        bytes: how many it has, where that is the reason.
    """

    path: str
    why: str
    bytes: int | None = None


@final
@dataclass(frozen=True)
class Snapshot:
    """What `code.json` says.

    Attributes:
        root: the folder whose code it is.
        cwd: the working folder, relative to it.
        files: what was kept, in the order of paths.
        left_out: what was not.
    """

    root: str
    cwd: str
    files: tuple[CodeFile, ...]
    left_out: tuple[LeftOut, ...]


def take_snapshot(home: Path, cwd: Path, repository: Repository | None, limits: Limits) -> Snapshot:
    """Store the code around `cwd` in the objects of `home`.

    Args:
        home: the home of the run.
        cwd: the working folder; its repository's root is the root, else itself.
        repository: the one that holds `cwd`.
        limits: how much to take.
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
    write_whole(folder / CODE, text.encode())


def read_snapshot(folder: Path) -> Snapshot:
    """Return the snapshot of the run in `folder`.

    Raises:
        UsageError: it has none.
        DamagedFile: `code.json` is not as it should be; a path that leads out of the root is so.
    """
    path = folder / CODE
    try:
        text = read(folder.resolve(), CODE, _LARGEST_LIST + 1)
    except NoFile as error:
        raise UsageError(f"run `{folder.name}` has no `{CODE}`: its code was not kept") from error
    if len(text) > _LARGEST_LIST:
        raise DamagedFile(f"`{path}` has more than {_LARGEST_LIST:_} bytes: no list of files has")
    try:
        fields: dict[str, Any] = json.loads(text)
        return Snapshot(
            str(fields["root"]),
            _inside(fields["cwd"], folder=True),
            tuple(_file_of(entry) for entry in fields["files"]),
            tuple(
                LeftOut(str(e["path"]), str(e["why"]), e.get("bytes")) for e in fields["left_out"]
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedFile(f"`{path}` is damaged ({error}): restore it from a copy") from error


def materialise(home: Path, run: Path, target: Path) -> Snapshot:
    """Write the code of the run in `run` into a new folder `target`, and return its snapshot.

    Nothing is written through a link, and nothing outside of `target`. Links are made last.

    Raises:
        UsageError: the run has no snapshot, or `target` exists.
        DamagedFile: `code.json` or an object is damaged.
        UserFacingError: the disk is full.
    """
    snapshot = read_snapshot(run)
    with disk_errors(target):
        target.mkdir(parents=True, mode=0o700)
        with _opened(target, os.O_RDONLY | os.O_DIRECTORY) as root:
            for file in sorted(snapshot.files, key=lambda file: file.link is not None):
                _put(home, root, file)
            _make_folders(root, PurePosixPath(snapshot.cwd))
    return snapshot


def read_object(home: Path, file: CodeFile) -> bytes:
    """Return the bytes of a file of a snapshot.

    Raises:
        DamagedFile: the object is gone or damaged.
    """
    path = object_path(home, file.sha256)
    try:
        # No more is read than it should have: a damaged one may be of any size.
        data, size = read_part(path.parent, path.name, 0, file.bytes)
    except NoFile as error:
        raise DamagedFile(f"`{file.path}` is kept no more (`{path}`: {error})") from error
    if size != file.bytes or hashlib.sha256(data).hexdigest() != file.sha256:
        raise DamagedFile(
            f"`{file.path}` is damaged: `{path}` should have {file.bytes} bytes with the SHA-256 "
            "that it is named by: restore it from a copy, or record a run where the file still is "
            "as it was, which replaces it"
        )
    return data


@dataclass
class _Taking:
    """A snapshot being taken."""

    home: Path
    root: Path
    limits: Limits
    files: list[CodeFile] = field(default_factory=list[CodeFile])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    total_bytes: int = 0
    unnamed: int = 0

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.limits.seconds

    def take(self, path: bytes) -> bool:
        """Keep one file; return whether to go on."""
        if time.monotonic() > self.deadline:
            self.leave_out(b"the rest", f"the snapshot took longer than {self.limits.seconds:g} s")
            return False
        if is_secret_file(path):
            self.leave_out(path, "may hold secrets")
        elif len(self.files) >= self.limits.files:
            self.leave_out(path, f"more than {self.limits.files:_} files")
        else:
            self._keep(path)
        return True

    def leave_out(self, path: bytes, why: str, size: int | None = None) -> None:
        """Say that something is not kept."""
        if len(self.left_out) < _NAMED_AT_MOST:
            self.left_out.append(LeftOut(os.fsdecode(path), why, size))
        else:
            self.unnamed += 1

    def count_the_rest(self) -> None:
        """Say how many more were left out than are named."""
        if self.unnamed:
            self.left_out.append(LeftOut(f"{self.unnamed:_} more", "not named one by one"))

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
                self.leave_out(path, "no file, link or folder")
        except (FileNotFoundError, NotADirectoryError):
            pass  # tracked and deleted
        except NotAFileError:
            self.leave_out(path, "no file, link or folder")
        except OSError as error:
            self.leave_out(path, str(error.strerror))

    def _keep_regular(self, path: bytes, absolute: Path, size: int) -> None:
        if size > self.limits.file_bytes:
            self.leave_out(path, f"larger than {self.limits.file_bytes / 1e6:g} MB", size)
        elif self.total_bytes + size > self.limits.total_bytes:
            self.leave_out(
                path, f"all files are more than {self.limits.total_bytes / 1e6:g} MB", size
            )
        else:
            stored = store(self.home, absolute)
            self.total_bytes += stored.bytes
            self.files.append(CodeFile(os.fsdecode(path), stored.sha256, stored.bytes, stored.mode))


def say_left_out(snapshot: Snapshot, say: Callable[[str], None]) -> None:
    """Say what a snapshot has not: the first few of each reason, and how many there are."""
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
    """Return a file as `code.json` names it.

    Raises:
        ValueError: it leads out of the root, or is no file's entry.
    """
    fields = cast("dict[str, Any]", entry)
    link = fields.get("link")
    sha256, size, mode = fields["sha256"], fields["bytes"], fields["mode"]
    if not (isinstance(sha256, str) and type(size) is int and type(mode) is int and size >= 0):
        raise ValueError(f"an entry of `{fields.get('path')!s:.80}` is of a wrong kind")
    if link is not None and (not isinstance(link, str) or not link or "\0" in link):
        raise ValueError("a link points nowhere")
    # No program becomes another user's by being archived.
    return CodeFile(_inside(fields["path"]), sha256, size, mode & 0o777, link)


def _inside(path: Any, folder: bool = False) -> str:
    """Return a path that stays inside the root it is relative to.

    Raises:
        ValueError: it does not.
    """
    if not isinstance(path, str) or "\0" in path or not path:
        raise ValueError(f"`{path!s:.80}` is no path")
    parts = path.split("/")
    if path == "." and folder:
        return path
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"path `{path:.80}` leads out of the root")
    return path


def _put(home: Path, root: int, file: CodeFile) -> None:
    """Write one file or link below the folder that the descriptor `root` is of."""
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


def _make_folders(root: int, path: PurePosixPath) -> None:
    with _folder_below(root, path):
        pass


@contextmanager
def _folder_below(root: int, path: PurePosixPath) -> Generator[int, None, None]:
    """Yield a descriptor of a folder below `root`, made if need be; no link is followed."""
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


@contextmanager
def _opened(path: Path, flags: int) -> Generator[int, None, None]:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
