"""The trash of a home: moves runs into it and back."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from runshelf.errors import UsageError
from runshelf.store.files import disk_errors
from runshelf.store.run import Run, open_run
from runshelf.store.run_ids import is_ulid, matching, short_id
from runshelf.store.state import state_of

TRASH = "trash"


def remove(home: Path, run: Run) -> None:
    """Move a run to the trash of `home`.

    Raises:
        UsageError: the run is running, or is not in `runs/` of `home`.
        UserFacingError: the run cannot be moved.
    """
    if run.folder.parent.resolve() != (home / "runs").resolve():
        raise UsageError(f"`{run.folder}` is not in `{home / 'runs'}`: give its home with --home")
    state = state_of(run)
    if state.name == "running":
        raise UsageError(f"run {run.short} is running: stop it first")
    trash = own_folder(home, TRASH)
    with disk_errors(trash), _locked(run):
        trash.mkdir(exist_ok=True)
        run.folder.rename(trash / run.ulid)
        os.utime(trash / run.ulid)  # the time of removal


def restore(home: Path, name: str) -> Run:
    """Move a run, named by its id or a part of it, from the trash back to the runs.

    Raises:
        UsageError: no run matches, or more than one.
        UserFacingError: the run cannot be moved.
    """
    known = trashed(home)
    matches = matching(known, name)
    if name == "latest" and known:
        matches = known[-1:]
    if len(matches) != 1:
        shown = ", ".join(map(short_id, (matches or known)[-3:])) or "it is empty"
        what = f"`{name}` matches {len(matches)} runs" if matches else f"there is no run `{name}`"
        raise UsageError(f"{what} in the trash of `{home}` ({shown})")
    target = home / "runs" / matches[0]
    if os.path.lexists(target):
        raise UsageError(f"run {matches[0]} already exists in `{target.parent}`: remove it first")
    with disk_errors(target):
        target.parent.mkdir(exist_ok=True)
        (own_folder(home, TRASH) / matches[0]).rename(target)
        os.utime(target)
    return open_run(target)


def trashed(home: Path) -> list[str]:
    """Return the ids of the runs in the trash, oldest first."""
    return sorted(name for name in folders_in(own_folder(home, TRASH)) if is_ulid(name))


def own_folder(home: Path, name: str) -> Path:
    """Return a folder of a home.

    Raises:
        UsageError: it is a link, which could lead anywhere.
    """
    folder = home / name
    if folder.is_symlink():
        raise UsageError(f"`{folder}` is a link: links are not followed, make it a folder")
    return folder


def folders_in(folder: Path) -> list[str]:
    """Return the names of the subfolders of a folder, without links."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))


@contextmanager
def _locked(run: Run) -> Generator[None, None, None]:
    """Hold a run's lock, so that it cannot be resumed meanwhile."""
    try:
        descriptor = os.open(run.folder / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"run {run.short} is being written: stop it first") from error
    finally:
        os.close(descriptor)
