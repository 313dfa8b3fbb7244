"""Selects the files of a snapshot: those that git tracks or does not ignore, else a folder walk.

Paths are bytes relative to the root. Tracked files come first, so that limits affect others first.
"""

import os
import time
from collections.abc import Callable, Generator, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import final

from runshelf.snapshot.git import find_nested, list_files
from runshelf.snapshot.git_process import Repository
from runshelf.snapshot.not_code import COMPILED, NotCode, is_compiled
from runshelf.store.home import RUNS

_NOT_CODE = frozenset(
    {"__pycache__", "venv", "node_modules", ".git", ".hg", ".svn", ".venv", ".tox", ".nox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
)
_NOT_CODE_FILES = (*COMPILED, ".DS_Store", "*.swp")

Report = Callable[[bytes, str], None]


@final
class Listing:
    """Lists the files of a folder once."""

    def __init__(self, root: Path, home: Path, deadline: float, left_out: Report) -> None:
        """Make a listing.

        Args:
            root: the folder; the repository's root if there is one.
            home: the home of the run; its own files are left out.
            deadline: a time of `time.monotonic`; files not found by then are left out.
            left_out: called with each folder that is left out, and the reason.
        """
        self._root = root
        self._deadline = deadline
        self._left_out = left_out
        self._not_code = NotCode(root)
        self._own_runs = _below(root, home / RUNS)
        self._other_runs: set[bytes] = set()

    def paths(self, repository: Repository | None) -> Generator[bytes, None, None]:
        """Yield the paths of everything but folders."""
        yield from self._in_git(repository, b"") if repository else self._walk(b"")

    def _is_of_a_home(self, path: bytes) -> bool:
        """Return whether a path belongs to a home of runs; report homes of other runs."""
        runs = self._not_code.runs_folder(path)
        if runs is not None and runs not in (self._own_runs, *self._other_runs):
            self._other_runs.add(runs)
            self._left_out(runs or b".", "the runs of another home, which are not code")
        return runs is not None

    def _in_git(self, repository: Repository, prefix: bytes) -> Generator[bytes, None, None]:
        seen_folders: list[bytes] = []
        # Tracked files are kept under any name.
        for selection, tracked in (
            (["--cached"], True),
            (["--others", "--exclude-standard"], False),
        ):
            left = self._deadline - time.monotonic()
            listing = list_files(repository, selection, left)
            complete = yield from self._sift(listing, prefix, seen_folders, tracked)
            if not complete:
                self._left_out(
                    prefix or b".", f"git ls-files {selection[0]} failed or took too long"
                )
        for folder in dict.fromkeys(seen_folders):
            yield from self._nested(folder)

    def _sift(
        self,
        listing: Generator[bytes, None, bool],
        prefix: bytes,
        folders: list[bytes],
        tracked: bool,
    ) -> Generator[bytes, None, bool]:
        """Yield files, and collect folders: git lists submodules and nested repositories so."""
        last = b""
        while True:
            try:
                path = next(listing)
            except StopIteration as stop:
                return stop.value
            full = prefix + path.rstrip(b"/")
            if full == last:  # a merge conflict has three entries in the index
                continue
            last = full
            if not tracked and (is_compiled(full) or self._is_of_a_home(full)):
                continue
            absolute = os.path.join(os.fsencode(self._root), full)  # noqa: PTH118  (bytes)
            if path.endswith(b"/") or (os.path.isdir(absolute) and not os.path.islink(absolute)):  # noqa: PTH112, PTH114  (bytes)
                folders.append(full)
            else:
                yield full

    def _nested(self, folder: bytes) -> Generator[bytes, None, None]:
        path = self._root / os.fsdecode(folder)
        repository = find_nested(path)
        if repository:
            yield from self._in_git(repository, folder + b"/")
        else:  # git cannot read it, or its working tree is elsewhere
            yield from self._walk(folder + b"/")

    def _walk(self, folder: bytes) -> Generator[bytes, None, None]:
        """Yield the files of a folder without git, except those that are not code by name."""
        if time.monotonic() > self._deadline:
            self._left_out(folder or b".", "the time limit of the snapshot was reached")
            return
        absolute = os.path.join(os.fsencode(self._root), folder)  # noqa: PTH118  (bytes)
        try:
            entries = sorted(os.scandir(absolute), key=lambda entry: entry.name)
        except OSError as error:
            self._left_out(folder or b".", f"cannot be read ({error.strerror})")
            return
        folders: list[bytes] = []
        for entry in entries:
            path = folder + entry.name
            if self._is_of_a_home(path):
                continue
            if not entry.is_dir(follow_symlinks=False):
                if not _matches(entry.name, _NOT_CODE_FILES):
                    yield path
            elif os.fsdecode(entry.name) not in _NOT_CODE:
                folders.append(path)
        for path in folders:
            if path.rpartition(b"/")[2].startswith(b"."):
                self._left_out(path, "a hidden folder outside of a git repository")
            else:
                yield from self._walk(path + b"/")


def _matches(name: bytes, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(os.fsdecode(name), pattern) for pattern in patterns)


def _below(root: Path, folder: Path) -> bytes | None:
    """Return a folder as a prefix of paths below the root; None if it is not below the root."""
    root, folder = root.resolve(), folder.resolve()
    if folder == root:
        return b""
    return os.fsencode(folder.relative_to(root)) + b"/" if folder.is_relative_to(root) else None
