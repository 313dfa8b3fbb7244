"""The trash of a home: moves runs into it and back."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.store.files import disk_errors
from runshelf.store.home import RUNS, TRASH, make_shared, old_shared, shared
from runshelf.store.run import Run, is_locked, open_run
from runshelf.store.run_ids import is_ulid, matching, short_id
from runshelf.store.state import state_of
from runshelf.store.writing import open_to_lock, touch


def remove(home: Path, run: Run) -> None:
    """Move a run to the trash of `home`.

    Raises:
        UsageError: the run is running, or is not in `runs/` of `home`.
        UserFacingError: the run cannot be moved.
    """
    runs = home / RUNS
    if run.folder.parent.resolve() != runs.resolve():
        raise UsageError(f"`{run.folder}` is not in `{runs}`: give its home with --home")
    if _is_running(run):
        raise UsageError(f"run {run.short} is running: stop it first")
    trash = without_links(home, shared(home, TRASH))
    with disk_errors(trash), _locked(run):
        make_shared(home, TRASH)
        # The time of removal, set before: a kill between the two must not leave an old time in the
        # trash, for which `gc` would delete the run at once.
        touch(run.folder)
        run.folder.rename(trash / run.ulid)


def restore(home: Path, name: str) -> Run:
    """Move a run, named by its id or a part of it, from the trash back to the runs.

    Raises:
        UsageError: no run matches, or more than one.
        UserFacingError: the run cannot be moved.
    """
    folders = trash_folders(home)
    known = list(folders)
    matches = matching(known, name)
    if name == "latest" and known:
        matches = known[-1:]
    if len(matches) != 1:
        shown = ", ".join(map(short_id, (matches or known)[-3:])) or "it is empty"
        what = f"`{name}` matches {len(matches)} runs" if matches else f"there is no run `{name}`"
        raise UsageError(f"{what} in the trash of `{home}` ({shown})")
    target = home / RUNS / matches[0]
    if os.path.lexists(target):
        raise UsageError(f"run {matches[0]} already exists in `{target.parent}`: remove it first")
    with disk_errors(target):
        target.parent.mkdir(exist_ok=True)
        folders[matches[0]].rename(target)
        touch(target)
    return open_run(target)


def trashed(home: Path) -> list[str]:
    """Return the ids of the runs in the trash, oldest first."""
    return list(trash_folders(home))


def trash_folders(home: Path) -> dict[str, Path]:
    """Return the folders of the runs in the trash by id, oldest first.

    Raises:
        UsageError: the trash is a link.
    """
    places = (without_links(home, place(home, TRASH)) for place in (old_shared, shared))
    found = {name: place / name for place in places for name in folders_in(place)}
    return {ulid: found[ulid] for ulid in sorted(found) if is_ulid(ulid)}


def without_links(home: Path, folder: Path) -> Path:
    """Return a folder of a home, after checking that no link leads to it from `runs/` on.

    Raises:
        UsageError: a link does, which could lead anywhere.
    """
    inner = [path for path in (folder, *folder.parents) if path.is_relative_to(home)]
    for path in inner:
        if path not in (home, home / RUNS) and path.is_symlink():
            raise UsageError(f"`{path}` is a link: links are not followed, make it a folder")
    return folder


def folders_in(folder: Path) -> list[str]:
    """Return the names of the subfolders of a folder, without links."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))


def _is_running(run: Run) -> bool:
    try:
        return state_of(run).name == "running"
    except UserFacingError:  # its events cannot be read: a damaged run can be removed
        return is_locked(run)


@contextmanager
def _locked(run: Run) -> Generator[None, None, None]:
    """Hold a run's lock, so that it cannot be resumed meanwhile.

    Without a lock, or with a link or a pipe in its place, the run cannot be resumed anyway.
    """
    descriptor = None
    with suppress(DamagedFile):
        descriptor = open_to_lock(run.folder, "lock")
    if descriptor is None:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"run {run.short} is being written: stop it first") from error
    finally:
        os.close(descriptor)
