"""Lines: what a program wrote, cut into lines with their place in the stream, and their order.

A carriage return goes back to the line's beginning, as a progress bar does: only what was written
last is kept. A line without an end is cut.
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
        end: how many bytes of the stream there were up to the line's end.
        text: what it says, without its end, carriage returns folded.
        raw: those of its bytes that came last, to be shown as they are.
        is_cut: it goes on in the next line of the stream.
    """

    stream: StreamName
    end: int
    text: bytes
    raw: bytes
    is_cut: bool = False


# As `Line` itself, without the call of a Python function for each.
_line = partial(tuple.__new__, Line)


@final
class Splitter:
    """Cuts one stream into lines."""

    def __init__(self, stream: StreamName, start: int = 0) -> None:
        """Begin at byte `start` of the stream."""
        self._stream: StreamName = stream
        self._pending = b""
        self.end = start
        self.pending_start = start  # where in the stream begins what a line is still made of

    def feed(self, data: bytes) -> tuple[list[Line], bytes]:
        """Return the lines that `data` completes, and the rest of it, of a line not ended yet."""
        *whole, rest = data.split(b"\n")
        if whole and self._are_plain(data, whole):
            lines = self._take_plain(whole)
        else:
            lines = [line for piece in whole for line in self._take(piece)]
        return lines + self._keep(rest), rest

    def _are_plain(self, data: bytes, pieces: list[bytes]) -> bool:
        """Return whether each of the pieces is a line as it stands, the first after the rest."""
        if b"\r" in data or b"\r" in self._pending:
            return False
        return len(self._pending) + len(max(pieces, key=len)) <= LONGEST

    def _take_plain(self, pieces: list[bytes]) -> list[Line]:
        """Return lines that need not be looked at one by one; a flood consists of these."""
        raws = [piece + b"\n" for piece in pieces]
        ends = list(accumulate(map(len, raws), initial=self.end))
        self.end = ends[-1]
        pieces[0], self._pending = self._pending + pieces[0], b""
        return list(map(_line, zip(repeat(self._stream), ends[1:], pieces, raws, repeat(False))))

    def _take(self, piece: bytes) -> list[Line]:
        """Return the lines that one line's last piece makes: several, if it is too long."""
        lines: list[Line] = []
        self.end += len(piece) + 1
        text, self._pending = fold(self._pending + piece), b""
        while len(text) > LONGEST:
            end = self.end - 1 - len(text) + LONGEST
            lines.append(Line(self._stream, end, text[:LONGEST], b"", True))
            text = text[LONGEST:]
        return [*lines, Line(self._stream, self.end, text, piece + b"\n")]

    def flush(self) -> list[Line]:
        """Return the last line, if it was not ended."""
        if not self._pending:
            return []
        line = Line(self._stream, self.end, fold(self._pending), b"")
        self._pending, self.pending_start = b"", self.end
        return [line]

    def _keep(self, rest: bytes) -> list[Line]:
        """Keep the beginning of a line; what a carriage return has undone is not kept."""
        lines: list[Line] = []
        self.end += len(rest)
        self._pending = _fold_open(self._pending + rest)
        while len(self._pending) > LONGEST:
            text, self._pending = self._pending[:LONGEST], self._pending[LONGEST:]
            lines.append(Line(self._stream, self.end - len(self._pending), text, b"", True))
        self.pending_start = self.end - len(self._pending)
        return lines


def fold(text: bytes) -> bytes:
    """Return what of a line was written last; returns at its very end undo nothing."""
    return text.rstrip(b"\r").rpartition(b"\r")[2] if b"\r" in text else text


def _fold_open(text: bytes) -> bytes:
    """Return the same of a line that may go on: the returns at its end are yet to count."""
    if b"\r" not in text:
        return text
    kept = text.rstrip(b"\r")
    return kept.rpartition(b"\r")[2] + text[len(kept) :][:1]


def in_order(
    queues: Sequence[deque[Line]], told: Sequence[int], seen: int
) -> tuple[list[Line], int]:
    """Return the lines of two streams in the order in which they were written, as far as is known.

    Args:
        queues: the new lines of each stream; those that are returned are taken out.
        told: places of queues in the order of writes. One stands for one write or several in a row,
            so each brings one line; those left over come with the last of their stream.
        seen: how many of those told were of writes before the lines were read. A later one whose
            line has not been read yet holds up all that was told after it.

    Returns:
        The lines, and how many of those told are done with.
    """
    last = {place: index for index, place in enumerate(told)}
    ordered: list[Line] = []
    for index, place in enumerate(told):
        queue = queues[place]
        if not queue and index >= seen:
            return ordered, index
        if index == last[place]:
            ordered += queue
            queue.clear()
        elif queue:
            ordered.append(queue.popleft())
    for queue in queues:  # told later: the write is done before it is told
        ordered += queue
        queue.clear()
    return ordered, len(told)
