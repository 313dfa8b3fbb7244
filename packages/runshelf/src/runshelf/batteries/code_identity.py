"""Which code a battery measures: one hash of its files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple, final

from runshelf.snapshot.code_snapshot import Limits, take_snapshot
from runshelf.snapshot.git import describe, find_repository
from runshelf.store.paths import is_folder

_PROSE = frozenset({".md", ".rst", ".svg", ".png", ".jpg", ".webp", ".gif", ".pdf", ".html"})
_LIMITS = Limits(seconds=30.0)


@final
class Code(NamedTuple):
    """The code that a battery measures.

    Attributes:
        root: its root, which is that of the repository if there is one.
        digest: of the paths, contents and modes of its files, without prose and pictures.
        commit: the commit that is checked out; empty without one, and if files differ from it.
    """

    root: Path
    digest: str
    commit: str


def code_of(battery: Path, cwd: Path, home: Path) -> Code:
    """Return the code that a battery measures: that of its repository, else around `cwd`.

    The files are kept in the home, as those of a run. The rows themselves do not count.

    Args:
        battery: the folder of the battery.
        cwd: the working folder.
        home: the home of the runs.
    """
    folder = battery if is_folder(battery) and find_repository(battery) else cwd
    repository = find_repository(folder)
    fields = None if repository is None else describe(repository)
    snapshot = take_snapshot(home, folder, repository, _LIMITS)
    root = Path(snapshot.root).resolve()
    lines = (f"{f.path}\0{f.sha256}\0{f.link}\0{f.mode & 0o111}" for f in snapshot.files)
    counted = (
        line
        for line, file in zip(lines, snapshot.files, strict=True)
        if PurePosixPath(file.path).suffix not in _PROSE
        and not (root / file.path).is_relative_to(battery.resolve())
    )
    clean = fields is not None and fields["dirty"] is False
    return Code(root, _digest(counted), str(fields["commit"]) if fields and clean else "")


def _digest(lines: Iterable[str]) -> str:
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode(errors="surrogateescape") + b"\n")
    return found.hexdigest()
