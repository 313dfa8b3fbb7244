"""The layout of a home: what runshelf keeps is in `<home>/runs/`, hidden from git.

    <home>/runs/
        .gitignore        hides the whole folder, unless other programs keep files in it, too
        <id>/             one folder for each run
        .runshelf/        what the runs share: objects/, trash/, reruns/, index.sqlite, settings;
                          and look/, clips that `backflip look` writes
    <home>/worklog/       notes of people, as Markdown: work.md, runs.md, ideas.md, confusions.md.
                          They are written by hand too, and belong into the repository

A `runs/` folder that holds other files gets no `.gitignore`, which would hide those files as well.
There, `.runshelf/` and each new run's folder hide themselves.

Homes made before 2026-11-23 have `objects/`, `trash/`, `index.sqlite` and `budget.json` beside
`runs/`. These are still read, but new files are written only to `runs/`.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from runshelf.errors import UsageError
from runshelf.store.writing import keep_file, replace_file

RUNS = "runs"
SHARED = ".runshelf"
OBJECTS = "objects"
TRASH = "trash"
RERUNS = "reruns"
LOOKS = "look"
INDEX = "index.sqlite"
BUDGET = "budget.json"
RESULT_METRIC = "metric.json"
HOURS = "hours.jsonl"
ALERTS = "alerts.jsonl"
WORKLOG = "worklog"

_IGNORE = ".gitignore"
_IGNORE_ALL = b"# Made by runshelf: nothing in this folder belongs to the repository.\n*\n"


def shared(home: Path, name: str) -> Path:
    """Return the path of what the runs of a home share, such as `objects`."""
    return home / RUNS / SHARED / name


def old_shared(home: Path, name: str) -> Path:
    """Return the path where homes made before 2026-11-23 have it."""
    return home / name


def has_runs(home: Path) -> bool:
    """Return whether a folder is a home: whether runshelf has written anything to its `runs/`."""
    try:
        return any(map(_is_ours, (home / RUNS).iterdir()))
    except OSError:
        return False


def is_beside_runs(name: str) -> bool:
    """Return whether an entry of `runs/` with this name is what runs share, or is for git."""
    return name == SHARED or name.startswith(_IGNORE)


def home_of(folder: Path) -> Path:
    """Return the home of the run in `folder`, which may be in the trash."""
    above = folder.absolute().parents
    return above[3] if above[1].name == SHARED else above[1]


def make_run_folder(home: Path, ulid: str) -> Path:
    """Make the folder of a new run, hidden from git.

    Raises:
        OSError: it exists, or cannot be made.
    """
    runs = _make_runs(home)
    folder = runs / ulid
    folder.mkdir()
    if not _is_hidden(runs):
        _hide(folder)
    return folder


def make_shared(home: Path, name: str = "") -> Path:
    """Make a folder that the runs of a home share, if it does not exist, hidden from git.

    Raises:
        OSError: it cannot be made.
    """
    top = _make_runs(home) / SHARED
    top.mkdir(exist_ok=True)
    _hide(top)
    (top / name).mkdir(parents=True, exist_ok=True)
    return top / name


def make_worklog(home: Path) -> Path:
    """Make the folder of notes, if it does not exist, and return it.

    Raises:
        UsageError: it cannot be made.
    """
    try:
        (home / WORKLOG).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(home, error) from error
    return home / WORKLOG


def make_shared_file(home: Path, name: str) -> Path:
    """Return the path of a file that the runs of a home share; its folder exists afterwards.

    Raises:
        UsageError: the home cannot be written.
    """
    try:
        return make_shared(home) / name
    except OSError as error:
        raise _unwritable(home, error) from error


def write_setting(home: Path, name: str, fields: Mapping[str, object]) -> None:
    """Write a setting of a home, such as its budget, as JSON.

    Raises:
        UsageError: the home cannot be written.
        UserFacingError: the disk is full.
    """
    path = make_shared_file(home, name)
    replace_file(path.parent, name, json.dumps(fields).encode() + b"\n")


def is_own_ignore_file(path: Path) -> bool:
    """Return whether runshelf wrote the file at `path` to hide a folder from git."""
    try:
        return path.name == _IGNORE and path.read_bytes() == _IGNORE_ALL
    except OSError:
        return False


def _unwritable(home: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write to `{home}` ({error.strerror}): give another folder with `--home`"
    )


def _make_runs(home: Path) -> Path:
    folder = home / RUNS
    folder.mkdir(parents=True, exist_ok=True)
    if not _is_hidden(folder) and all(map(_is_ours, folder.iterdir())):
        _hide(folder)
    return folder


def _is_ours(entry: Path) -> bool:
    """Return whether an entry of `runs/` is a run, or what runs share."""
    # A kill in `_hide` leaves a file whose name begins with that of the file for git.
    is_partial = entry.name.startswith(f"{_IGNORE}.")
    return is_partial or entry.name == SHARED or (entry / "run.json").is_file()


def _is_hidden(folder: Path) -> bool:
    return is_own_ignore_file(folder / _IGNORE)


def _hide(folder: Path) -> None:
    """Make git ignore a folder and its content, unless it has a `.gitignore` already."""
    if not os.path.lexists(folder / _IGNORE):
        keep_file(folder.resolve(), _IGNORE, _IGNORE_ALL)  # `runs/` may be a link to another disk
