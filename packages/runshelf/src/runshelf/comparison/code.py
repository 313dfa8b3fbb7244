"""Line-by-line comparison of the archived code of two runs."""

import difflib
import math
import time
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.snapshot.code_snapshot import CodeFile, read_object, read_snapshot


@final
class Bounds(NamedTuple):
    """Limits of the comparison by lines, which takes up to quadratic time.

    Attributes:
        bytes: the maximum size of a file; of larger files only the difference is reported.
        lines: the maximum number of lines of a file, and of its diff.
        files: the maximum number of differing files to compare; None for all.
        seconds: the time after which no further file is compared.
    """

    bytes: int = 1_000_000
    lines: int = 10_000
    files: int | None = None
    seconds: float = math.inf


WIDE = Bounds()


@final
class FileDiff(NamedTuple):
    """A file that differs.

    Attributes:
        path: relative to the root of the code.
        change: `added`, `removed` or `changed`.
        note: why lines are missing; may be empty.
        lines: the unified diff.
    """

    path: str
    change: str
    note: str
    lines: list[str]


@final
class CodeDiff(NamedTuple):
    """The differences between the code of two runs.

    Attributes:
        files: the files that differ, up to the limit.
        left_out: the number of further files that differ.
        same: the number of equal files.
        note: why the code cannot be compared; may be empty.
    """

    files: list[FileDiff]
    left_out: int
    same: int
    note: str


def diff_code(home: Path, one: Path, other: Path, bounds: Bounds = WIDE) -> CodeDiff:
    """Compare the archived code of two runs.

    Args:
        home: the home of both runs.
        one: the folder of the first run.
        other: the folder of the second run.
        bounds: the limits of the comparison.
    """
    try:
        ours, theirs = (
            {file.path: file for file in read_snapshot(folder).files} for folder in (one, other)
        )
    except UserFacingError as error:
        return CodeDiff([], 0, 0, str(error))
    paths = sorted({*ours, *theirs})
    changed = [path for path in paths if not _is_same(ours.get(path), theirs.get(path))]
    end = time.monotonic() + bounds.seconds
    files = [
        _diff(home, path, ours.get(path), theirs.get(path), bounds, end)
        for path in changed[: bounds.files]
    ]
    return CodeDiff(files, len(changed) - len(files), len(paths) - len(changed), "")


def _is_same(one: CodeFile | None, other: CodeFile | None) -> bool:
    if one is None or other is None:
        return False
    return (one.sha256, one.link, one.mode) == (other.sha256, other.link, other.mode)


def _diff(
    home: Path, path: str, one: CodeFile | None, other: CodeFile | None, bounds: Bounds, end: float
) -> FileDiff:
    change = "added" if one is None else "removed" if other is None else "changed"
    if one and other and (one.sha256, one.link) == (other.sha256, other.link):
        return FileDiff(path, change, f"mode {one.mode:o} -> {other.mode:o}", [])
    if time.monotonic() > end:
        return FileDiff(path, change, "not compared by lines: the time limit was reached", [])
    try:
        before, after = _text(home, one, bounds), _text(home, other, bounds)
    except (UserFacingError, OSError) as error:
        return FileDiff(path, change, str(error), [])
    if before is None or after is None:
        return FileDiff(path, change, "binary, or too large to compare by lines", [])
    lines = list(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="", n=3))
    note = f"the first {bounds.lines} of {len(lines)} lines" if len(lines) > bounds.lines else ""
    return FileDiff(path, change, note, lines[: bounds.lines])


def _text(home: Path, file: CodeFile | None, bounds: Bounds) -> list[str] | None:
    """Return a file's lines; None if it is binary or too long."""
    if file is None:
        return []
    if file.link is not None:
        return [f"link to {file.link}"]
    if file.bytes > bounds.bytes:
        return None
    data = read_object(home, file)
    if b"\0" in data:
        return None
    lines = data.decode(errors="replace").splitlines()
    return lines if len(lines) <= bounds.lines else None
