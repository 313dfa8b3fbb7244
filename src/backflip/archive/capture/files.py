"""Which files of a folder belong to a snapshot: what git tracks or does not ignore, or a walk.

Paths are bytes relative to the root. Tracked files come first, so that limits meet them last.
"""

import os
import time
from collections.abc import Callable, Generator, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import final

from backflip.archive.capture.git import Repository, find_repository, list_files

# What may hold a key, and what of it is an example only.
SECRET_FILES = (
    *(".env", ".env.*", "*.pem", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "id_ecdsa*"),
    *(".netrc", ".pypirc", ".npmrc", ".git-credentials", "credentials.json", "*.keystore"),
)
_EXAMPLES = ("*.example", "*.sample", "*.template", "*.dist", "*.pub")

_NOT_CODE = frozenset(
    {"__pycache__", "venv", "node_modules", ".git", ".hg", ".svn", ".venv", ".tox", ".nox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
)
_NOT_CODE_FILES = ("*.pyc", "*.pyo", ".DS_Store", "*.swp")
_OF_A_HOME = ("runs", "objects", "trash", "reruns", "budget.json")

Report = Callable[[bytes, str], None]


def is_secret_file(path: bytes) -> bool:
    """Return whether a file's name says that it holds keys."""
    name = os.fsdecode(path.rpartition(b"/")[2])
    if any(fnmatchcase(name, pattern) for pattern in _EXAMPLES):
        return False
    return any(fnmatchcase(name, pattern) for pattern in SECRET_FILES)


@final
class Listing:
    """Lists the files of a folder once."""

    def __init__(self, root: Path, home: Path, deadline: float, left_out: Report) -> None:
        """Make a listing.

        Args:
            root: the folder; a repository's root if it is in one.
            home: whose own files are no code.
            deadline: of `time.monotonic`; what is not found by then is left out.
            left_out: is told which folder is left out, and why.
        """
        self._root = root
        self._deadline = deadline
        self._left_out = left_out
        self._own = _own_files(root, home)

    def paths(self, repository: Repository | None) -> Generator[bytes, None, None]:
        """Yield the paths of files, links and what else there may be, but no folders."""
        found = self._in_git(repository, b"") if repository else self._walk(b"")
        yield from (path for path in found if not self._is_own(path))

    def _is_own(self, path: bytes) -> bool:
        return any(path == own or path.startswith(own + b"/") for own in self._own)

    def _in_git(self, repository: Repository, prefix: bytes) -> Generator[bytes, None, None]:
        seen_folders: list[bytes] = []
        for selection in (["--cached"], ["--others", "--exclude-standard"]):
            left = self._deadline - time.monotonic()
            listing = list_files(repository, selection, left)
            complete = yield from self._sift(listing, prefix, seen_folders)
            if not complete:
                self._left_out(prefix or b".", f"git ls-files {selection[0]} took too long")
        for folder in dict.fromkeys(seen_folders):
            yield from self._nested(folder)

    def _sift(
        self, listing: Generator[bytes, None, bool], prefix: bytes, folders: list[bytes]
    ) -> Generator[bytes, None, bool]:
        """Pass on files; a submodule or a repository within is a folder to git."""
        last = b""
        while True:
            try:
                path = next(listing)
            except StopIteration as stop:
                return stop.value
            full = prefix + path.rstrip(b"/")
            if full == last:  # a conflict in the index has three stages
                continue
            last = full
            absolute = os.path.join(os.fsencode(self._root), full)  # noqa: PTH118  (bytes)
            if path.endswith(b"/") or (os.path.isdir(absolute) and not os.path.islink(absolute)):  # noqa: PTH112, PTH114  (bytes)
                folders.append(full)
            else:
                yield full

    def _nested(self, folder: bytes) -> Generator[bytes, None, None]:
        if self._is_own(folder):
            return
        path = self._root / os.fsdecode(folder)
        repository = find_repository(path) if (path / ".git").exists() else None
        if repository and repository.root.resolve() == path.resolve():
            yield from self._in_git(repository, folder + b"/")
        elif any(path.iterdir()):
            self._left_out(folder, "a repository that git cannot read")

    def _walk(self, folder: bytes) -> Generator[bytes, None, None]:
        """Yield what lies in a folder without git, without what is no code by its name."""
        if time.monotonic() > self._deadline:
            self._left_out(folder or b".", "the time for the snapshot was over")
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
            if not entry.is_dir(follow_symlinks=False):
                if not _matches(entry.name, _NOT_CODE_FILES):
                    yield path
            elif os.fsdecode(entry.name) not in _NOT_CODE and not self._is_own(path):
                folders.append(path)
        for path in folders:
            if path.rpartition(b"/")[2].startswith(b"."):
                self._left_out(path, "a hidden folder, in no git repository")
            else:
                yield from self._walk(path + b"/")


def _matches(name: bytes, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(os.fsdecode(name), pattern) for pattern in patterns)


def _own_files(root: Path, home: Path) -> list[bytes]:
    """Return the paths of a home's own files, relative to the root, if it lies there."""
    root, home = root.resolve(), home.resolve()
    if not home.is_relative_to(root):
        return []
    inside = home.relative_to(root)
    return [os.fsencode(inside / name) for name in (*_OF_A_HOME, *_indexes(home))]


def _indexes(home: Path) -> list[str]:
    return [path.name for path in home.glob("index.sqlite*")]
