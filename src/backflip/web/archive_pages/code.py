"""The archived code of a run: its tree, one file of it, and how it differs from another's."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from backflip.archive import opening
from backflip.archive.comparing.code import Bounds, CodeDiff, diff_code
from backflip.archive.opening import NoFile
from backflip.archive.snapshot.code_snapshot import (
    CODE,
    CodeFile,
    Snapshot,
    read_object,
    read_snapshot,
)
from backflip.core.errors import BackflipError
from backflip.web.archive_pages.plain import decoded, plain, shown

PATCH = "code.patch"
MOST_SHOWN = 512 * 1024
_COMPARED = Bounds(bytes=200 * 1024, lines=4_000, files=100, seconds=1.0)
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


def snapshot_of(folder: Path) -> Snapshot | None:
    """Return the code of a run; None if none was kept, or what says so is damaged."""
    if not has_code(folder):
        return None
    try:
        return read_snapshot(folder)
    except BackflipError:
        return None


def patch_of(folder: Path) -> tuple[list[DiffLine], bool]:
    """Return a run's uncommitted changes, and whether there is more than can be shown."""
    try:
        data = opening.read(folder, PATCH, MOST_SHOWN + 1)
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
    return [shown(line, _LONGEST_LINE) for line in _text(home, file).splitlines()]


def difference(home: Path, one: Path, other: Path) -> CodeDiff:
    """Return how the code of the runs in two folders differs, as far as a page can bear."""
    return diff_code(home, one, other, _COMPARED)


def has_code(folder: Path) -> bool:
    """Return whether code was kept of a run."""
    return opening.size_of(folder, CODE) is not None


def diff_lines(lines: Sequence[str]) -> list[DiffLine]:
    """Return the lines of a unified diff with what each is."""
    return [DiffLine(_kind(line), shown(line, _LONGEST_LINE)) for line in lines]


def _text(home: Path, file: CodeFile) -> str:
    if file.bytes > MOST_SHOWN:
        raise NoFile(f"not shown: {file.bytes:,} bytes".replace(",", " "))
    try:
        data = read_object(home, file)
    except BackflipError as error:
        raise NoFile(f"not shown: {error}") from None
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
