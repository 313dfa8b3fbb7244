"""The output of a run in pages, so that `output.log` is never read as a whole."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.recorder.output_reader import read_part
from runshelf.web.sanitize import clean, decode

MOST_LINES = 400
MOST_BYTES = 256 * 1024


@final
class OutputLine(NamedTuple):
    """One line of output.

    Attributes:
        seconds: since the start, as written.
        stream: `out` or `err`, followed by `+` if the line continues on the next.
        text: the sanitized line.
    """

    seconds: str
    stream: str
    text: str


@final
class OutputPage(NamedTuple):
    """A part of the output.

    Attributes:
        lines: oldest first.
        start: byte position of the first line in `output.log`.
        end: byte position after the last line.
        size: size of the log in bytes.
    """

    lines: Sequence[OutputLine]
    start: int
    end: int
    size: int


def page_before(folder: Path, before: int | None = None) -> OutputPage:
    """Return the last lines that end at or before a position; default: the end of the log."""
    _, size = read_part(folder, 0, 0)
    before = size if before is None else max(0, min(before, size))
    if not before:
        return OutputPage((), 0, 0, size)
    first = max(0, before - MOST_BYTES)
    data, size = read_part(folder, first, before - first)
    data = data[: data.rfind(b"\n") + 1] or data
    end = first + len(data)
    skipped = 0 if first == 0 else data.find(b"\n") + 1
    # A line longer than a page is shown in pieces. The recorder writes none.
    pieces = data[skipped:].splitlines(keepends=True)[-MOST_LINES:] or [data]
    return OutputPage([_line(piece) for piece in pieces], end - sum(map(len, pieces)), end, size)


def page_after(folder: Path, after: int) -> OutputPage:
    """Return the first complete lines from a position on."""
    data, size = read_part(folder, max(0, after), MOST_BYTES)
    if not data:
        return OutputPage((), after, after, size)
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and len(data) == MOST_BYTES:  # a line longer than a page
        whole = data
    pieces = whole.splitlines(keepends=True)[:MOST_LINES]
    return OutputPage(
        [_line(piece) for piece in pieces], after, after + sum(map(len, pieces)), size
    )


def _line(piece: bytes) -> OutputLine:
    fields = piece.rstrip(b"\n").split(b"\t", 3)
    if len(fields) == 4 and fields[1].rstrip(b"+") in (b"out", b"err") and len(fields[0]) < 20:
        seconds, stream, _, text = fields
        return OutputLine(clean(decode(seconds)), decode(stream), clean(decode(text)))
    return OutputLine("", "out", clean(decode(piece.rstrip(b"\n"))))
