"""The recorded code of a run: the file list, one file, and the diff to another run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.comparison.code import Bounds, CodeDiff, diff_code
from runshelf.errors import UserFacingError
from runshelf.formatting import size
from runshelf.index.rows import RunRow
from runshelf.snapshot.code_snapshot import CODE, CodeFile, Snapshot, read_object, read_snapshot
from runshelf.store import opening
from runshelf.store.opening import NoFile
from runshelf.web.sanitize import clean, decode, sanitize

PATCH = "code.patch"
MOST_SHOWN = 512 * 1024
_COMPARED = Bounds(bytes=200 * 1024, lines=4_000, files=100, seconds=1.0)
_LONGEST_LINE = 2_000


@final
class DiffLine(NamedTuple):
    """One line of a diff; `kind` is `add`, `del`, `at`, `file` or empty."""

    kind: str
    text: str


def read(home: Path, row: RunRow, path: str | None, parent: RunRow | None) -> dict[str, Any]:
    """Return the template variables of the code page.

    Args:
        home: the home of the run.
        row: the run.
        path: the file to show, if any.
        parent: the run to compare with, if any.
    """
    snapshot = snapshot_of(row.folder)
    file = next((f for f in snapshot.files if f.path == path), None) if snapshot else None
    text: list[str] = []
    problem = "" if path is None or file else "There is no such file in the snapshot."
    if file is not None:
        try:
            text = text_of(home, file)
        except NoFile as error:
            problem = f"This file is {error}."
    differs = parent is not None and snapshot is not None and has_code(parent.folder)
    patch, patch_cut = patch_of(row.folder)
    return {
        "snapshot": snapshot,
        "path": path,
        "text": text,
        "problem": problem,
        "patch": patch,
        "patch_cut": patch_cut,
        "parent": parent,
        "difference": difference(home, parent.folder, row.folder) if parent and differs else None,
    }


def snapshot_of(folder: Path) -> Snapshot | None:
    """Return the code snapshot of a run; None if it is missing or invalid."""
    if not has_code(folder):
        return None
    try:
        return read_snapshot(folder)
    except UserFacingError:
        return None


def patch_of(folder: Path) -> tuple[list[DiffLine], bool]:
    """Return a run's uncommitted changes, and whether they were cut."""
    try:
        data = opening.read(folder, PATCH, MOST_SHOWN + 1)
    except NoFile:
        return [], False
    return diff_lines(decode(data[:MOST_SHOWN]).splitlines()), len(data) > MOST_SHOWN


def text_of(home: Path, file: CodeFile) -> list[str]:
    """Return the sanitized lines of a file in the snapshot.

    Raises:
        NoFile: the file is missing, too large, or not text.
    """
    if file.link is not None:
        return [f"a link to {file.link}"]
    if file.bytes > MOST_SHOWN:
        raise NoFile(f"too large to be shown ({size(file.bytes)})")
    try:
        data = read_object(home, file)
    except UserFacingError as error:
        raise NoFile(f"not readable: {error}") from None
    if b"\0" in data[:8192]:
        raise NoFile("not text")
    return [clean(line, _LONGEST_LINE) for line in decode(data).splitlines()]


def difference(home: Path, one: Path, other: Path) -> CodeDiff:
    """Return the diff between the code of two runs, within the limits of a page."""
    return diff_code(home, one, other, _COMPARED)


def has_code(folder: Path) -> bool:
    """Return whether a run has a code snapshot."""
    return opening.size_of(folder, CODE) is not None


def diff_lines(lines: Sequence[str]) -> list[DiffLine]:
    """Return the sanitized lines of a unified diff with their kinds."""
    return [DiffLine(_kind(line), clean(line, _LONGEST_LINE)) for line in lines]


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "file"
    if line.startswith("@@"):
        return "at"
    return {"+": "add", "-": "del"}.get(line[:1], "")


def clean_path(path: str) -> str:
    """Return a sanitized path; bytes that are not UTF-8 become replacement characters."""
    return sanitize(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
