"""Finds and removes what is not needed: old runs in the trash, unused code, uncompacted metrics.

Nothing outside the home is changed, and links are not followed.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final

from runshelf.cleanup.reruns import left_reruns
from runshelf.cleanup.trash import folders_in, trash_folders, without_links
from runshelf.errors import UserFacingError
from runshelf.index.location import old_index_files
from runshelf.snapshot.code_snapshot import CODE
from runshelf.snapshot.object_store import no_snapshot_taken
from runshelf.store import opening
from runshelf.store.compacting import compact
from runshelf.store.files import disk_errors
from runshelf.store.finding import list_runs
from runshelf.store.home import INDEX, OBJECTS, RUNS, SHARED, old_shared, shared
from runshelf.store.metrics import BrokenLine
from runshelf.store.run import Run, is_locked, open_run
from runshelf.store.run_ids import is_ulid, short_id
from runshelf.store.state import OVER, state_of
from runshelf.store.summary import kept_as_lines
from runshelf.store.trees import remove_tree, tree_bytes

TRASH_DAYS = 30.0
# A newer folder without a manifest may be a run that is being prepared.
LEFTOVER_SECONDS = 3600.0
_DAY = 86400.0
_MOST_EMPTY_LINES = 4096
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@final
class Garbage(NamedTuple):
    """What `collect` removes or compacts.

    Attributes:
        objects: stored files that no run refers to, not even a run in the trash.
        object_bytes: their disk usage.
        trashed: ids of the runs that have been in the trash long enough.
        trashed_bytes: their disk usage.
        leftovers: ids in `runs/` of folders without a run.
        compactable: ids of finished runs whose metrics are still lines.
        lines_bytes: the disk usage of these lines.
        old_index: files of an index beside `runs/`, which versions before 2026-11-23 used.
        kept: the first invalid line of each metrics file that stays lines because of it.
        reruns: folders of reruns that were killed.
    """

    objects: list[Path]
    object_bytes: int
    trashed: list[str]
    trashed_bytes: int
    leftovers: list[str]
    compactable: list[str]
    lines_bytes: int
    old_index: list[Path]
    kept: list[BrokenLine]
    reruns: list[Path]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove or compact."""
        folders = self.trashed, self.leftovers, self.compactable, self.reruns
        return not any((*folders, self.objects, self.old_index))


@final
class Usage(NamedTuple):
    """Disk usage of one run: of its folder, and of its objects, which other runs may share."""

    run: str
    bytes: int
    code_bytes: int
    is_trashed: bool


@final
class DiskUsage(NamedTuple):
    """Disk usage of a home and of each run, largest first; shared objects count once."""

    runs: list[Usage]
    runs_bytes: int
    objects_bytes: int
    trash_bytes: int
    index_bytes: int

    @property
    def total_bytes(self) -> int:
        """The sum of all parts."""
        return self.runs_bytes + self.objects_bytes + self.trash_bytes + self.index_bytes


def find_garbage(home: Path, trash_days: float = TRASH_DAYS) -> Garbage:
    """Return what `collect` would do; nothing is changed.

    Raises:
        UserFacingError: a folder cannot be read.
    """
    with disk_errors(home):
        trash = trash_folders(home)
        old = {u: folder for u, folder in trash.items() if _age(folder) >= trash_days * _DAY}
        objects = _unused_objects(home, [trash[ulid] for ulid in trash if ulid not in old])
        compactable = [u for u in list_runs(home) if _is_compactable(home / RUNS / u)]
        return Garbage(
            objects=objects,
            object_bytes=sum(_size(path) for path in objects),
            trashed=list(old),
            trashed_bytes=sum(map(tree_bytes, old.values())),
            leftovers=[
                name for name in folders_in(home / RUNS) if _is_leftover(home / RUNS / name)
            ],
            compactable=compactable,
            lines_bytes=sum(
                _size(p) for u in compactable for p in _compactable_files(home / RUNS / u)
            ),
            old_index=old_index_files(home),
            kept=[broken for u in list_runs(home) for broken in kept_as_lines(home / RUNS / u)],
            reruns=left_reruns(home),
        )


def collect(
    home: Path,
    trash_days: float = TRASH_DAYS,
    report: Callable[[int, int], None] = lambda done, total: None,
    failed: Callable[[str], None] = lambda message: None,
) -> Garbage:
    """Remove garbage, compact the metrics of finished runs, and return what was done.

    Args:
        home: the folder of runs, objects and trash.
        trash_days: how many days a run stays in the trash.
        report: called with the number of compacted runs and the total.
        failed: called with one line for each thing that cannot be removed or compacted.

    Raises:
        UserFacingError: the home cannot be read, or nothing can be written in it.
    """
    with disk_errors(home), no_snapshot_taken(home):
        garbage = find_garbage(home, trash_days)
        trash = trash_folders(home)
        trashed, trashed_bytes = _remove([trash[u] for u in garbage.trashed], remove_tree, failed)
        leftovers, _ = _remove([home / RUNS / u for u in garbage.leftovers], remove_tree, failed)
        objects, object_bytes = _remove(garbage.objects, Path.unlink, failed)
        old_index, _ = _remove(garbage.old_index, Path.unlink, failed)
        reruns, _ = _remove(garbage.reruns, remove_tree, failed)
    compacted: list[str] = []
    lines_bytes = 0
    for done, ulid in enumerate(garbage.compactable):
        report(done, len(garbage.compactable))
        size = _compact(home / RUNS / ulid, failed)
        compacted += [ulid] if size else []
        lines_bytes += size
    report(len(garbage.compactable), len(garbage.compactable))
    return Garbage(
        objects=objects,
        object_bytes=object_bytes,
        trashed=[folder.name for folder in trashed],
        trashed_bytes=trashed_bytes,
        leftovers=[folder.name for folder in leftovers],
        compactable=compacted,
        lines_bytes=lines_bytes,
        old_index=old_index,
        kept=[broken for u in list_runs(home) for broken in kept_as_lines(home / RUNS / u)],
        reruns=reruns,
    )


def disk_usage(home: Path) -> DiskUsage:
    """Return the disk usage of a home and of each run.

    Raises:
        UserFacingError: a folder cannot be read.
    """
    with disk_errors(home):
        sizes = {path.name: _size(path) for path in _objects(home)}
        runs = [home / RUNS / name for name in folders_in(home / RUNS) if name != SHARED]
        rows = [
            Usage(folder.name, tree_bytes(folder), _code_bytes(folder, sizes), is_trashed)
            for folders, is_trashed in ((runs, False), (trash_folders(home).values(), True))
            for folder in folders
        ]
        index = sum(_size(path) for path in _index_files(home))
    return DiskUsage(
        sorted(rows, key=lambda row: row.bytes, reverse=True),
        sum(row.bytes for row in rows if not row.is_trashed),
        sum(sizes.values()),
        sum(row.bytes for row in rows if row.is_trashed),
        index,
    )


def _remove(
    paths: Iterable[Path], remove: Callable[[Path], None], failed: Callable[[str], None]
) -> tuple[list[Path], int]:
    """Remove what can be removed; return that, and its disk usage."""
    done: list[Path] = []
    total = 0
    for path in paths:
        size = tree_bytes(path) if path.is_dir() else _size(path)
        try:
            remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            failed(f"`{path}` is not removed: {error.strerror}")
            continue
        done.append(path)
        total += size
    return done, total


def _compact(folder: Path, failed: Callable[[str], None]) -> int:
    """Compact the metrics of a run; return the number of bytes of the lines that were moved."""
    before = _lines_bytes(folder)
    try:
        compact(folder)
    except UserFacingError as error:
        failed(f"run {short_id(folder.name)} is not compacted: {error}")
    return before - _lines_bytes(folder)


def _lines_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.glob("metrics-*.jsonl"))


def _objects(home: Path) -> Iterator[Path]:
    """Yield all objects."""
    for place in (shared, old_shared):
        root = without_links(home, place(home, OBJECTS) / "sha256")
        for prefix in folders_in(root):
            with os.scandir(root / prefix) as entries:
                files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            yield from (root / prefix / name for name in files)


def _index_files(home: Path) -> list[Path]:
    """Return the files of the index, and those of an index beside `runs/`."""
    folder = shared(home, INDEX).parent
    return [*(p for p in folder.glob(f"{INDEX}*") if p.is_file()), *old_index_files(home)]


def _unused_objects(home: Path, trash: Iterable[Path]) -> list[Path]:
    """Return the objects that no run refers to, including the runs in `trash`."""
    runs = [home / RUNS / name for name in folders_in(home / RUNS)]
    named = {sha256 for folder in [*runs, *trash] for sha256 in _hashes(folder)}
    return [path for path in _objects(home) if path.name not in named]


def _hashes(folder: Path) -> set[str]:
    """Return all hashes in a run's list of files, even if the list is damaged."""
    try:
        text = opening.read(folder, CODE, 1 << 62)
    except opening.NoFile as error:
        path = folder / CODE
        if path.is_file() and not path.is_symlink():
            raise UserFacingError(f"`{path}` cannot be read: make it readable") from error
        return set()
    return {match.decode() for match in _HASH.findall(text)}


def _is_leftover(folder: Path) -> bool:
    """Return whether a folder belongs to a run that was killed before it began."""
    if not is_ulid(folder.name) or os.path.lexists(folder / "run.json"):
        return False
    return _age(folder) > LEFTOVER_SECONDS and not is_locked(Run(folder, {}))


def _is_compactable(folder: Path) -> bool:
    with suppress(UserFacingError, OSError):
        return bool(_compactable_files(folder)) and state_of(open_run(folder)).name in OVER
    return False


def _compactable_files(folder: Path) -> list[Path]:
    lines = [
        path
        for path in folder.glob("metrics-*.jsonl")
        if not path.is_symlink() and path.is_file() and _has_lines(folder, path.name)
    ]
    kept = {broken.path for broken in kept_as_lines(folder)} if lines else set[Path]()
    return [path for path in lines if path not in kept]


def _has_lines(folder: Path, name: str) -> bool:
    """Return whether a metrics file has lines; each compaction leaves one more empty line."""
    try:
        return bool(opening.read(folder, name, _MOST_EMPTY_LINES).strip(b"\n"))
    except opening.NoFile:
        return False


def _code_bytes(folder: Path, sizes: dict[str, int]) -> int:
    return sum(sizes.get(sha256, 0) for sha256 in _hashes(folder))


def _age(path: Path) -> float:
    return time.time() - path.lstat().st_mtime


def _size(path: Path) -> int:
    """Return the disk usage of a file; 0 if it is gone."""
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0
