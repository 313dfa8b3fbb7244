"""What is kept and what may go: the trash, what nothing refers to any more, and how much it all is.

Nothing outside of a home is touched, and no link is followed.
"""

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from backflip.archive.compacting import compact
from backflip.archive.files import disk_errors
from backflip.archive.metrics import BrokenLine
from backflip.archive.recorder.salvage import salvage
from backflip.archive.run import Run, is_locked, is_ulid, list_runs, open_run
from backflip.archive.state import OVER, state_of
from backflip.archive.summary import kept_as_lines
from backflip.core.errors import BackflipError, UsageError

TRASH_DAYS = 30.0
# What was stored less than this ago may belong to a run that is just being prepared.
GRACE_SECONDS = 3600.0
_DAY = 86400.0
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_NAMES_OBJECTS = ("code.json", "outputs.json", "run.json")
_QUARANTINE = "quarantine"
_WAIT_SECONDS = 30.0
_RUNS, _TRASH = "runs", "trash"


@final
class Garbage(NamedTuple):
    """What `collect` removes, and what it makes smaller.

    Attributes:
        objects: files that no run names, those in the trash included.
        object_bytes: how much they take.
        trashed: the ids of runs that have been in the trash for long.
        trashed_bytes: how much they take.
        leftovers: ids of folders of runs that never began.
        compactable: the ids of finished runs whose metrics are still lines.
        lines_bytes: how much these lines take now.
        kept: of files of metrics that stay lines because of lines that are no records, the first
            of these.
    """

    objects: list[Path]
    object_bytes: int
    trashed: list[str]
    trashed_bytes: int
    leftovers: list[str]
    compactable: list[str]
    lines_bytes: int
    kept: list[BrokenLine]


@final
class Usage(NamedTuple):
    """How much one run takes on disk.

    Attributes:
        run: its id.
        bytes: in its own folder.
        code_bytes: in objects, which it may share with others.
        is_trashed: it is in the trash.
    """

    run: str
    bytes: int
    code_bytes: int
    is_trashed: bool


@final
class DiskUsage(NamedTuple):
    """How much a home takes on disk; objects are counted once.

    Attributes:
        runs: each run, the largest first.
        runs_bytes: all runs' own folders.
        objects_bytes: all objects.
        trash_bytes: all that is in the trash.
        index_bytes: the index.
    """

    runs: list[Usage]
    runs_bytes: int
    objects_bytes: int
    trash_bytes: int
    index_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.runs_bytes + self.objects_bytes + self.trash_bytes + self.index_bytes


def remove(home: Path, run: Run) -> None:
    """Move a run to the trash of `home`.

    Raises:
        UsageError: it is running, or not in the `runs/` of `home`.
        BackflipError: it cannot be moved.
    """
    if run.folder.parent.resolve() != (home / _RUNS).resolve():
        raise UsageError(f"`{run.folder}` is not in `{home / _RUNS}`: name its home with --home")
    state = state_of(run)
    if state.name == "running":
        raise UsageError(f"run {run.ulid} is running: stop it first")
    trash = _own_folder(home, _TRASH)
    with disk_errors(trash), _unwritten(run):
        trash.mkdir(exist_ok=True)
        run.folder.rename(trash / run.ulid)
        os.utime(trash / run.ulid)  # since when it has been there


def restore(home: Path, name: str) -> Run:
    """Move the run that `name` means, by id or its beginning, from the trash back to the runs.

    Raises:
        UsageError: there is none, or more than one.
        BackflipError: it cannot be moved.
    """
    known = trashed(home)
    matches = [ulid for ulid in known if name and ulid.startswith(name.upper())]
    if name == "latest" and known:
        matches = known[-1:]
    if len(matches) != 1:
        shown = ", ".join((matches or known)[-3:]) or "it is empty"
        what = f"`{name}` begins {len(matches)} runs" if matches else f"there is no run `{name}`"
        raise UsageError(f"{what} in the trash of `{home}` ({shown})")
    target = home / _RUNS / matches[0]
    if os.path.lexists(target):
        raise UsageError(f"run {matches[0]} is in `{target.parent}` already: remove that one first")
    with disk_errors(target):
        target.parent.mkdir(exist_ok=True)
        (_own_folder(home, _TRASH) / matches[0]).rename(target)
        os.utime(target)
    return open_run(target)


def trashed(home: Path) -> list[str]:
    """Return the ids of the runs in the trash, oldest first."""
    return sorted(name for name in _folders(_own_folder(home, _TRASH)) if is_ulid(name))


def find_garbage(home: Path, trash_days: float = TRASH_DAYS) -> Garbage:
    """Return what may go: nothing is changed.

    Args:
        home: the folder of runs, objects and trash.
        trash_days: how long a run stays in the trash.

    Raises:
        BackflipError: a folder cannot be read.
    """
    with disk_errors(home):
        old = [u for u in trashed(home) if _age(home / _TRASH / u) >= trash_days * _DAY]
        kept = [home / _TRASH / ulid for ulid in trashed(home) if ulid not in old]
        objects = list(_unnamed(home, kept))
        compactable = [u for u in list_runs(home) if _is_compactable(home / _RUNS / u)]
        return Garbage(
            objects,
            sum(_size(path) for path in objects),
            old,
            sum(_tree_bytes(home / _TRASH / ulid) for ulid in old),
            [name for name in _folders(home / _RUNS) if _is_leftover(home / _RUNS / name)],
            compactable,
            sum(_size(p) for u in compactable for p in _compactable_files(home / _RUNS / u)),
            [broken for u in list_runs(home) for broken in kept_as_lines(home / _RUNS / u)],
        )


def collect(
    home: Path,
    trash_days: float = TRASH_DAYS,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Garbage:
    """Remove what may go, make metrics of finished runs smaller; return what was done.

    Output that killed recorders left behind is taken into its runs first.

    Args:
        home: the folder of runs, objects and trash.
        trash_days: how long a run stays in the trash.
        report: called with how many runs have been made smaller, and of how many.

    Raises:
        BackflipError: something cannot be removed.
    """
    _put_back(home)
    for ulid in list_runs(home):
        with suppress(BackflipError, OSError):
            salvage(home / _RUNS / ulid)
    garbage = find_garbage(home, trash_days)
    with disk_errors(home):
        for ulid in garbage.trashed:
            _remove_tree(home / _TRASH / ulid)
        for ulid in garbage.leftovers:
            _remove_tree(home / _RUNS / ulid)
        removed = _remove_objects(home, garbage.objects)
    for done, ulid in enumerate(garbage.compactable):
        report(done, len(garbage.compactable))
        with suppress(BackflipError):  # a damaged file is left as it is
            compact(home / _RUNS / ulid)
    report(len(garbage.compactable), len(garbage.compactable))
    kept = [broken for u in list_runs(home) for broken in kept_as_lines(home / _RUNS / u)]
    garbage = garbage._replace(kept=kept)
    return garbage if removed else garbage._replace(objects=[], object_bytes=0)


def disk_usage(home: Path) -> DiskUsage:
    """Return how much a home takes on disk, and each of its runs.

    Raises:
        BackflipError: a folder cannot be read.
    """
    with disk_errors(home):
        sizes = {path.name: _size(path) for path in _objects(home)}
        rows = [
            Usage(name, _tree_bytes(folder / name), _code_bytes(folder / name, sizes), is_trashed)
            for folder, is_trashed in ((home / _RUNS, False), (home / _TRASH, True))
            for name in _folders(folder)
        ]
        index = sum(_size(path) for path in home.glob("index.sqlite*") if path.is_file())
    return DiskUsage(
        sorted(rows, key=lambda row: row.bytes, reverse=True),
        sum(row.bytes for row in rows if not row.is_trashed),
        sum(sizes.values()),
        sum(row.bytes for row in rows if row.is_trashed),
        index,
    )


@contextmanager
def _unwritten(run: Run) -> Generator[None, None, None]:
    """Hold a run's lock, so that nobody resumes it meanwhile."""
    try:
        descriptor = os.open(run.folder / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"run {run.ulid} is being written: stop it first") from error
    finally:
        os.close(descriptor)


def _own_folder(home: Path, name: str) -> Path:
    """Return a folder of a home.

    Raises:
        UsageError: it is a link, behind which could be anything.
    """
    folder = home / name
    if folder.is_symlink():
        raise UsageError(f"`{folder}` is a link: links are not followed, make it a folder")
    return folder


def _folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, links left out."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))


def _objects(home: Path) -> Iterator[Path]:
    """Yield all objects."""
    root = _own_folder(_own_folder(home, "objects"), "sha256")
    for prefix in _folders(root):
        with os.scandir(root / prefix) as entries:
            yield from (root / prefix / e.name for e in entries if e.is_file(follow_symlinks=False))


def _unnamed(home: Path, trash: Iterable[Path]) -> Iterator[Path]:
    """Yield the objects that no run names, but those of the last hour."""
    named = _named(home, trash)
    for path in _objects(home):
        if path.name not in named and _age(path) > GRACE_SECONDS:
            yield path


def _named(home: Path, trash: Iterable[Path]) -> set[str]:
    """Return all hashes that runs name, whether or not their files are damaged."""
    runs = [home / _RUNS / name for name in _folders(home / _RUNS)]
    return {sha256 for folder in [*runs, *trash] for sha256 in _hashes(folder)}


def _hashes(folder: Path) -> set[str]:
    found: set[str] = set()
    for name in _NAMES_OBJECTS:
        with suppress(FileNotFoundError):
            found |= {match.decode() for match in _HASH.findall(_read_plain(folder / name))}
    return found


def _read_plain(path: Path) -> bytes:
    """Return the bytes of a file; none of what is no plain file."""
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read()
    except OSError as error:
        if isinstance(error, FileNotFoundError) or path.is_symlink():
            return b""
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _remove_objects(home: Path, objects: Sequence[Path]) -> bool:
    """Remove objects, unless a run that began meanwhile has use for them; return whether.

    They are set aside first. A run whose code is being stored now may have found one there before
    and not have written its name yet; whoever comes later stores it anew. So it is enough to wait
    for those runs that are being prepared now, and to look again at what is named.
    """
    if not objects:
        return True
    aside = home / "objects" / _QUARANTINE
    aside.mkdir(exist_ok=True)
    for path in objects:
        path.rename(aside / path.name)
    settled = _nobody_is_preparing(home)
    named = _named(home, [home / _TRASH / ulid for ulid in trashed(home)])
    for path in objects:
        if not settled or path.name in named:
            _put_one_back(aside / path.name, path)
    _remove_tree(aside)
    return settled


def _put_back(home: Path) -> None:
    """Undo the setting aside of objects by somebody who was killed over it."""
    aside = home / "objects" / _QUARANTINE
    if aside.is_symlink() or not aside.is_dir():
        return
    with disk_errors(aside):
        for path in list(aside.iterdir()):
            if re.fullmatch("[0-9a-f]{64}", path.name):
                target = home / "objects" / "sha256" / path.name[:2] / path.name
                _put_one_back(path, target)


def _put_one_back(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    path.replace(target)


def _nobody_is_preparing(home: Path) -> bool:
    """Wait until no run is between being made and having its manifest; return whether that came."""
    waiting = [home / _RUNS / n for n in _folders(home / _RUNS) if _is_unborn(home / _RUNS / n)]
    deadline = time.monotonic() + _WAIT_SECONDS
    while waiting and time.monotonic() < deadline:
        waiting = [folder for folder in waiting if _is_unborn(folder) and _is_held(folder)]
        if waiting:
            time.sleep(0.1)
    return not waiting


def _is_unborn(folder: Path) -> bool:
    return folder.is_dir() and not os.path.lexists(folder / "run.json")


def _is_held(folder: Path) -> bool:
    # Between making the folder and locking it lie a few instructions.
    return is_locked(Run(folder, {})) or _age(folder) < 5.0


def _is_leftover(folder: Path) -> bool:
    """Return whether a folder is of a run that was killed before it began."""
    if not is_ulid(folder.name) or not _is_unborn(folder) or _age(folder) < GRACE_SECONDS:
        return False
    return not is_locked(Run(folder, {}))


def _is_compactable(folder: Path) -> bool:
    with suppress(BackflipError, OSError):
        return bool(_compactable_files(folder)) and state_of(open_run(folder)).name in OVER
    return False


def _compactable_files(folder: Path) -> list[Path]:
    lines = _lines_of(folder)
    kept = {broken.path for broken in kept_as_lines(folder)} if lines else set[Path]()
    return [path for path in lines if path not in kept]


def _lines_of(folder: Path) -> list[Path]:
    """Return the metrics files of a run that hold lines."""
    return [
        path
        for path in folder.glob("metrics-*.jsonl")
        if not path.is_symlink() and path.is_file() and path.stat().st_size > 1
    ]


def _code_bytes(folder: Path, sizes: dict[str, int]) -> int:
    return sum(sizes.get(sha256, 0) for sha256 in _hashes(folder))


def _age(path: Path) -> float:
    return time.time() - path.lstat().st_mtime


def _size(path: Path) -> int:
    """Return what a file takes on disk; nothing if it is gone."""
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def _tree_bytes(folder: Path) -> int:
    total = 0
    for parent, folders, files in os.walk(folder):
        total += sum(_size(Path(parent, name)) for name in (*folders, *files))
    return total


def _remove_tree(folder: Path) -> None:
    """Remove a folder with all in it, folders included that may not be written."""

    def open_up(function: Callable[..., Any], path: str, _: object) -> None:
        parent = Path(path).parent
        for each in (parent, Path(path)):
            if each.is_dir() and not each.is_symlink():
                each.chmod(0o700)
        function(path) if function is not os.open else shutil.rmtree(path)

    shutil.rmtree(folder, onerror=open_up)
