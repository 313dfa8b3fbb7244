"""Cuts a program's output into lines, with their positions, and orders the lines of two streams.

After a carriage return, as a progress bar writes it, only the text after it is kept. Lines longer
than `LONGEST` are cut.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, repeat
from typing import Literal, NamedTuple, final

StreamName = Literal["out", "err"]
STREAMS: tuple[StreamName, StreamName] = ("out", "err")
LONGEST = 1 << 16


@final
class Line(NamedTuple):
    """One line of a stream.

    Attributes:
        stream: `out` or `err`.
        end: bytes of the stream up to the end of the line.
        text: the line without its newline, carriage returns folded.
        raw: the newest bytes of the line, to be shown unchanged.
        is_cut: the line continues in the next line of the stream.
    """

    stream: StreamName
    end: int
    text: bytes
    raw: bytes
    is_cut: bool = False


# Faster than `Line(...)`, which calls a Python function each time.
_line = partial(tuple.__new__, Line)


@final
class Splitter:
    """Cuts one stream into lines."""

    def __init__(self, stream: StreamName, start: int = 0) -> None:
        self._stream: StreamName = stream
        self._pending = b""
        self.end = start
        self.pending_start = start  # the position of the unfinished line in the stream

    def feed(self, data: bytes) -> tuple[list[Line], bytes]:
        """Return the lines that `data` completes, and the bytes of the unfinished line."""
        *pieces, rest = data.split(b"\n")
        if pieces and self._are_plain(data, pieces):
            lines = self._take_plain(pieces)
        else:
            lines = [line for piece in pieces for line in self._take(piece)]
        return lines + self._keep(rest), rest

    def _are_plain(self, data: bytes, pieces: list[bytes]) -> bool:
        """Return whether every piece is a complete line without carriage returns or cuts."""
        if b"\r" in data or b"\r" in self._pending:
            return False
        return len(self._pending) + len(max(pieces, key=len)) <= LONGEST

    def _take_plain(self, pieces: list[bytes]) -> list[Line]:
        """Return complete lines in bulk: the fast path for large output."""
        raws = [piece + b"\n" for piece in pieces]
        ends = list(accumulate(map(len, raws), initial=self.end))
        self.end = ends[-1]
        pieces[0], self._pending = self._pending + pieces[0], b""
        return list(map(_line, zip(repeat(self._stream), ends[1:], pieces, raws, repeat(False))))

    def _take(self, piece: bytes) -> list[Line]:
        """Return the line that a piece completes, cut into several if it is too long."""
        lines: list[Line] = []
        self.end += len(piece) + 1
        text, self._pending = fold(self._pending + piece), b""
        while len(text) > LONGEST:
            end = self.end - 1 - len(text) + LONGEST
            lines.append(Line(self._stream, end, text[:LONGEST], b"", True))
            text = text[LONGEST:]
        return [*lines, Line(self._stream, self.end, text, piece + b"\n")]

    def flush(self) -> list[Line]:
        """Return the unfinished line, if there is one."""
        if not self._pending:
            return []
        line = Line(self._stream, self.end, fold(self._pending), b"")
        self._pending, self.pending_start = b"", self.end
        return [line]

    def _keep(self, rest: bytes) -> list[Line]:
        """Store an unfinished line, folded; return the pieces that exceed the longest line."""
        lines: list[Line] = []
        self.end += len(rest)
        self._pending = _fold_open(self._pending + rest)
        while len(self._pending) > LONGEST:
            text, self._pending = self._pending[:LONGEST], self._pending[LONGEST:]
            lines.append(Line(self._stream, self.end - len(self._pending), text, b"", True))
        self.pending_start = self.end - len(self._pending)
        return lines


def fold(text: bytes) -> bytes:
    """Return the text after the last carriage return; returns at the very end are dropped."""
    return text.rstrip(b"\r").rpartition(b"\r")[2] if b"\r" in text else text


def _fold_open(text: bytes) -> bytes:
    """Do the same for an unfinished line, and keep one return at its end."""
    if b"\r" not in text:
        return text
    kept = text.rstrip(b"\r")
    return kept.rpartition(b"\r")[2] + text[len(kept) :][:1]


def in_order(
    queues: Sequence[deque[Line]], writes: Sequence[int], seen: int
) -> tuple[list[Line], int]:
    """Return the lines of two streams in the order of their writes, as far as it is known.

    Args:
        queues: the new lines of each stream; returned lines are removed.
        writes: indices of queues in the order of writes. One entry is one write, or several in a
            row to one stream. So each entry takes one line, and the last entry of a stream takes
            all that are left.
        seen: how many of `writes` happened before the lines were read. A later write whose line
            has not been read yet holds up all writes after it.

    Returns:
        The lines, and how many entries of `writes` are done.
    """
    last = {place: index for index, place in enumerate(writes)}
    ordered: list[Line] = []
    for index, place in enumerate(writes):
        queue = queues[place]
        if not queue and index >= seen:
            return ordered, index
        if index == last[place]:
            ordered += queue
            queue.clear()
        elif queue:
            ordered.append(queue.popleft())
    for queue in queues:  # a write happens before it is reported
        ordered += queue
        queue.clear()
    return ordered, len(writes)
