"""Recognises untracked files that are not code: files of homes of runs, and compiled files."""

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import final

from runshelf.received_json import parse_record
from runshelf.store.home import BUDGET, RUNS, SHARED, is_own_ignore_file

COMPILED = ("*.pyc", "*.pyo")
_COMPILED_FOLDER = "__pycache__"
# The parts of a path at which the files of a home begin.
_RUN = rb"[0-7][0-9A-HJKMNP-TV-Z]{25}"
_IN_RUNS = re.compile(
    rb"(?:\A|(?<=/))(?:%s|%s|\.gitignore\Z)(?=/|\Z)" % (_RUN, re.escape(SHARED.encode()))
)
# Homes made before 2026-11-23 have these beside `runs/`.
_BESIDE_RUNS = re.compile(
    rb"(?:\A|(?<=/))(?:(?:trash|reruns)/%s(?=/|\Z)|objects/sha256(?=/|\Z)"
    rb"|index\.sqlite(?:[-.]\w+)*\Z|%s\Z)" % (_RUN, re.escape(BUDGET.encode()))
)


@final
class NotCode:
    """Recognises untracked files below a folder that are not code. Paths are relative to it."""

    def __init__(self, root: Path) -> None:
        """Remember the folder."""
        self._root = root
        self._homes: dict[bytes, bool] = {}
        self._runs_folders: dict[bytes, bool] = {}

    def has(self, path: bytes) -> bool:
        """Return whether a file is not code."""
        return is_compiled(path) or self.runs_folder(path) is not None

    def runs_folder(self, path: bytes) -> bytes | None:
        """Return the `runs/` folder of the home that a file belongs to; None if it is in no home.

        It ends with `/`, or is empty if it is the root.
        """
        for found in _IN_RUNS.finditer(path):
            above = path[: found.start()]
            if self._is_runs(above) and self._is_ours(path, found[0]):
                return above
        for found in _BESIDE_RUNS.finditer(path):
            above = path[: found.start()]
            if self._is_home(above) and self._is_ours(path, found[0]):
                return above + RUNS.encode() + b"/"
        return None

    def _is_runs(self, folder: bytes) -> bool:
        """Return whether a folder is the `runs/` of a home, perhaps renamed."""
        if folder not in self._runs_folders:
            path = self._at(folder)
            self._runs_folders[folder] = path.name == RUNS or (path / SHARED).is_dir()
        return self._runs_folders[folder]

    def _is_home(self, folder: bytes) -> bool:
        if folder not in self._homes:
            self._homes[folder] = (self._at(folder) / RUNS).is_dir()
        return self._homes[folder]

    def _is_ours(self, path: bytes, name: bytes) -> bool:
        """Return whether we wrote a file, if its name alone does not tell."""
        if name == b".gitignore":
            return is_own_ignore_file(self._at(path))
        return name != BUDGET.encode() or _is_budget(self._at(path))

    def _at(self, path: bytes) -> Path:
        return self._root / os.fsdecode(path)


def is_compiled(path: bytes) -> bool:
    """Return whether Python compiled a file from code."""
    *folders, name = os.fsdecode(path).split("/")
    return _COMPILED_FOLDER in folders or any(fnmatchcase(name, each) for each in COMPILED)


def _is_budget(path: Path) -> bool:
    try:
        return list(parse_record(path.read_bytes())) == ["weekly"]
    except (OSError, ValueError):
        return False
