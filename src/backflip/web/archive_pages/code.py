"""The archived code of a run: its tree, one file of it, and how it differs from another's."""

import difflib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from backflip.archive.capture.objects import object_path
from backflip.archive.capture.snapshot import CODE, CodeFile, Snapshot, read_snapshot
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import files
from backflip.web.archive_pages.files import NoFile
from backflip.web.archive_pages.plain import decoded, plain, shown

PATCH = "code.patch"
MOST_SHOWN = 512 * 1024
_MOST_COMPARED = 200 * 1024
_MOST_LINES = 4_000
_MOST_DIFFERENT = 100
_DIFF_SECONDS = 1.0
_LONGEST_LINE = 2_000


@final
class DiffLine(NamedTuple):
    """One line of a diff.

    Attributes:
        kind: `add`, `del`, `at` or `file` for headings, or empty.
        text: the line, its mark included.
    """

    kind: str
    text: str


@final
class Changed(NamedTuple):
    """A file that differs between two trees.

    Attributes:
        path: relative to the root.
        how: `changed`, `added` or `removed`.
        lines: the diff, if both are text and small enough.
        note: why there is none.
    """

    path: str
    how: str
    lines: list[DiffLine]
    note: str


def snapshot_of(folder: Path) -> Snapshot | None:
    """Return the code of a run; None if none was kept, or what says so is damaged."""
    if files.size_of(folder, CODE) is None:
        return None
    try:
        return read_snapshot(folder)
    except BackflipError:
        return None


def patch_of(folder: Path) -> tuple[list[DiffLine], bool]:
    """Return a run's uncommitted changes, and whether there is more than can be shown."""
    try:
        data = files.read(folder, PATCH, MOST_SHOWN + 1)
    except NoFile:
        return [], False
    return diff_lines(decoded(data[:MOST_SHOWN]).splitlines()), len(data) > MOST_SHOWN


def text_of(home: Path, file: CodeFile) -> list[str]:
    """Return the lines of an archived file, fit to be shown.

    Raises:
        NoFile: it is not there, too large, or no text.
    """
    if file.link is not None:
        return [f"a link to {file.link}"]
    return [shown(line, _LONGEST_LINE) for line in _text(home, file, MOST_SHOWN).splitlines()]


def differing(home: Path, before: Snapshot, after: Snapshot) -> tuple[list[Changed], int]:
    """Return what differs from one tree to another, and how many files do in all."""
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in after.files}
    paths = sorted(p for p in old.keys() | new.keys() if _held(old, p) != _held(new, p))
    until = time.monotonic() + _DIFF_SECONDS
    changed = [
        _changed(home, path, old.get(path), new.get(path), until)
        for path in paths[:_MOST_DIFFERENT]
    ]
    return changed, len(paths)


def diff_lines(lines: Sequence[str]) -> list[DiffLine]:
    """Return the lines of a unified diff with what each is."""
    return [DiffLine(_kind(line), shown(line, _LONGEST_LINE)) for line in lines]


def _held(tree: dict[str, CodeFile], path: str) -> tuple[str, str | None] | None:
    return (tree[path].sha256, tree[path].link) if path in tree else None


def _changed(
    home: Path, path: str, old: CodeFile | None, new: CodeFile | None, until: float
) -> Changed:
    how = "added" if old is None else "removed" if new is None else "changed"
    if time.monotonic() > until:
        return Changed(path, how, [], "not compared line by line: too much differs")
    try:
        before, after = (_compared(home, file) for file in (old, new))
    except NoFile as error:
        return Changed(path, how, [], str(error))
    lines = difflib.unified_diff(before, after, "before", "after", lineterm="", n=3)
    return Changed(path, how, diff_lines([*lines][2:_MOST_LINES]), "")


def _compared(home: Path, file: CodeFile | None) -> list[str]:
    if file is None:
        return []
    if file.link is not None:
        return [f"link to {file.link}"]
    lines = _text(home, file, _MOST_COMPARED).splitlines()
    if len(lines) > _MOST_LINES:
        raise NoFile(f"not compared line by line: {len(lines)} lines")
    return lines


def _text(home: Path, file: CodeFile, most: int) -> str:
    if file.bytes > most:
        raise NoFile(f"not shown: {file.bytes:,} bytes".replace(",", " "))
    try:
        place = object_path(home, file.sha256)
    except BackflipError:
        raise NoFile("the list of files is damaged") from None
    data = files.read(place.parent, place.name, most)
    if b"\0" in data[:8192]:
        raise NoFile("not shown: it is no text")
    return decoded(data)


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "file"
    if line.startswith("@@"):
        return "at"
    return {"+": "add", "-": "del"}.get(line[:1], "")


def shown_path(path: str) -> str:
    """Return a path fit to be shown; bytes that are no text are made visible."""
    return plain(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
