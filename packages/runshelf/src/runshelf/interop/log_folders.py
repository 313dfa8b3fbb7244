"""Finds folders of logs: TensorBoard's event files, `monitor.csv`, `progress.csv` or `.txt`.

Links are not followed, and paths inside a file are never opened.
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.interop.csv_files import Csv, read_csv
from runshelf.interop.spinup_files import PROGRESS as SPINUP_PROGRESS
from runshelf.interop.spinup_files import is_spinup
from runshelf.interop.tfrecord import Damage, read_frames
from runshelf.store.files import disk_errors
from runshelf.store.paths import exists, is_folder

MOST_FILES = 10_000
DEEPEST = 100  # folders inside each other
_PROGRESS = ("progress.csv", SPINUP_PROGRESS)
_MONITOR = ("r", "l", "t")
_OF_SETTINGS = re.compile(r"1\d{9}\.\d+")  # a time since 1970, as `str(time.time())`

Say = Callable[[str], None]


class NoLogs(UsageError):
    """There are no logs at or below a path."""


class Skipped(NamedTuple):
    """A file that could not be imported, and the reason in one line."""

    path: Path
    why: str


@final
@dataclass(frozen=True)
class LogFolder:
    """A folder, and the sorted paths of its logs, relative to it.

    A log may lie in a neighbouring folder, if both hold logs of one training run.
    """

    folder: Path
    files: list[str]

    @property
    def events(self) -> list[Path]:
        """The event files in the folder."""
        return [self.folder / name for name in self.files if "tfevents" in Path(name).name]

    @property
    def progress(self) -> Path | None:
        """The `progress.csv`, or the `progress.txt` of Spinning Up, if there is one."""
        found = [name for name in self.files if Path(name).name in _PROGRESS]
        return self.folder / found[0] if found else None

    @property
    def monitors(self) -> list[Path]:
        """The `monitor.csv` files, one per environment."""
        return [self.folder / name for name in self.files if _is_monitor(Path(name).name)]

    def digest(self) -> str:
        """Return the SHA-256 of the names and contents of all files."""
        whole = hashlib.sha256()
        for name in self.files:
            path = self.folder / name
            with disk_errors(path), path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{os.fsencode(name)!r} {content}\n".encode())
        return whole.hexdigest()


def find_log_folders(path: Path, say: Say) -> list[LogFolder]:
    """Return the folders with logs at or below a path, or the folder of one log.

    Raises:
        NoLogs: there are no logs.
        UsageError: the path does not exist, or there are too many logs.
        UserFacingError: a folder cannot be read.
    """
    if not exists(path):
        raise UsageError(f"`{path}` does not exist: give a folder of logs")
    if is_folder(path):
        walked = _walk(path, say)
        found = [
            LogFolder(folder, files)
            for folder, files in walked.items()
            if files and not _holds_settings(folder, walked)
        ]
    else:
        found = [LogFolder(path.parent, [path.name])] if _is_log(path) else []
    if not found:
        raise NoLogs(
            f"nothing to import in `{path}`: expected event files of TensorBoard "
            "(`*tfevents*`), `progress.csv` or `monitor.csv`, or Spinning Up's `progress.txt`"
        )
    return found


def without_unreadable(source: LogFolder) -> tuple[LogFolder, list[Skipped]]:
    """Split off the logs of a folder that cannot be read."""
    bad: list[Skipped] = []
    for name in source.files:
        try:
            _check(source.folder / name)
        except UserFacingError as error:
            bad.append(Skipped(source.folder / name, str(error)))
    left_out = {file.path.name for file in bad}
    return replace(source, files=[name for name in source.files if name not in left_out]), bad


def read_table(path: Path) -> Csv:
    """Return the content of a `progress.csv`, `progress.txt` or `monitor.csv`.

    Raises:
        DamagedFile: there is no line of column names.
        UserFacingError: the file cannot be read.
    """
    return read_csv(path, _MONITOR if _is_monitor(path.name) else ())


def _walk(path: Path, say: Say) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for folder, folders, names in os.walk(path, onerror=_raise, followlinks=False):
        here = Path(folder)
        folders.sort()
        if len(here.parts) - len(path.parts) >= DEEPEST and folders:
            say(f"skipped, more than {DEEPEST} folders deep: what is in `{str(here)[:200]}`")
            folders.clear()
        logs = [name for name in sorted(names) if _has_name_of_log(name)]
        files = [n for n in logs if (here / n).is_file() and not (here / n).is_symlink()]
        for name in sorted({*logs} - {*files}):
            say(f"skipped, not a regular file: `{here / name}`")
        found[here] = [name for name in files if _is_log(here / name)]
        if sum(map(len, found.values())) > MOST_FILES:
            raise UsageError(f"`{path}` has more than {MOST_FILES} logs: import its subfolders")
    return found


def _holds_settings(folder: Path, walked: Mapping[Path, Sequence[str]]) -> bool:
    """Return whether a folder is one that PyTorch's `add_hparams` makes inside of a logdir.

    Its name is the time, and its event file holds settings and final values: it is no run.
    """
    return bool(_OF_SETTINGS.fullmatch(folder.name) and walked.get(folder.parent))


def _check(path: Path) -> None:
    """Check that the beginning of a log can be read.

    Raises:
        DamagedFile: it is not a log.
        UserFacingError: it cannot be read.
    """
    if "tfevents" in path.name:
        if next(read_frames(path, Damage()), None) is not None:
            return
        raise DamagedFile(f"`{path}` has no complete record: it is not an event file")
    table = read_table(path)
    missing = [name for name in _MONITOR if name not in table.names]
    if _is_monitor(path.name) and missing:
        raise DamagedFile(f"`{path}` has no column `{missing[0]}`: it is not a monitor file")


def _raise(error: OSError) -> None:
    raise UserFacingError(f"cannot read `{error.filename}`: {error.strerror}") from error


def _is_log(file: Path) -> bool:
    return _has_name_of_log(file.name) and (file.name != SPINUP_PROGRESS or is_spinup(file))


def _has_name_of_log(name: str) -> bool:
    return "tfevents" in name or name in _PROGRESS or _is_monitor(name)


def _is_monitor(name: str) -> bool:
    return name == "monitor.csv" or name.endswith(".monitor.csv")
