"""Reads both streams of a program from its spool, in the order of its writes."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import final

from runshelf.recorder.lines import STREAMS, Line, Splitter, StreamName, in_order
from runshelf.recorder.linux import Watch
from runshelf.recorder.spool import CHUNK, Spool, SpoolReader

_SETTLE_SECONDS = 0.002
_LATE_SECONDS = 0.05  # for the report of a write, on a busy machine

# Called with complete lines, and with the unfinished line of each stream.
Take = Callable[[list[Line], dict[StreamName, bytes]], None]


@final
class SpooledOutput:
    """Both streams of a program that prints into a spool."""

    def __init__(self, spool: Spool) -> None:
        """Start watching the spool, before the program starts."""
        self._readers = [SpoolReader(spool, stream) for stream in STREAMS]
        self._splitters = [Splitter(stream) for stream in STREAMS]
        self._writes: list[int] = []
        self._lines = [deque[Line]() for _ in STREAMS]
        self._rests = [b"" for _ in STREAMS]
        self._watch: Watch | None = None
        with suppress(OSError):
            self._watch = Watch([spool.path(stream) for stream in STREAMS])

    @property
    def times_emptied(self) -> int:
        """How many times the program truncated its own output."""
        return sum(reader.times_emptied for reader in self._readers)

    @property
    def backlog(self) -> int:
        """How many printed bytes have not been read."""
        return sum(reader.backlog for reader in self._readers)

    @property
    def descriptor(self) -> int | None:
        """A descriptor that becomes readable after a write; None if the spool must be polled."""
        return None if self._watch is None else self._watch.descriptor

    def read(self, take: Take) -> bool:
        """Pass new output to `take`; return whether there may be more."""
        self._writes += self._watch.read() if self._watch else []
        seen = len(self._writes)
        data = [reader.read() for reader in self._readers]
        is_full = any(len(new) >= CHUNK for new in data)
        if any(data) and (all(data) or not is_full):
            # Data is visible shortly before the write is reported.
            time.sleep(_SETTLE_SECONDS)
        # Now all writes before these reads are reported, and some later ones.
        self._writes += self._watch.read() if self._watch else []
        if not is_full:  # else its newest write is not in these data
            self._wait_for_report(data)
        for place, new in enumerate(data):
            self._feed(place, new)
        lines, done = in_order(self._lines, self._writes, seen)
        del self._writes[:done]
        rests: dict[StreamName, bytes] = {s: self._rest_of(n) for n, s in enumerate(STREAMS)}
        if lines or any(rests.values()):
            take(lines, rests)
        for place, reader in enumerate(self._readers):
            start = self._splitters[place].pending_start
            if not self._lines[place] and reader.release(start):
                self._drop_own_event(place)
        return is_full or any(self._lines)

    def finish(self, take: Take) -> None:
        """Pass on all remaining output, and unfinished lines."""
        # A surviving process may print without end, so only the present backlog is read.
        left = self.backlog
        while left > 0:
            before = self.backlog
            self.read(take)
            left -= max(before - self.backlog, 1)
        while self.read(take) and any(self._lines):
            pass
        take([line for splitter in self._splitters for line in splitter.flush()], {})

    def close(self) -> None:
        """Stop watching and reading."""
        if self._watch is not None:
            self._watch.close()
        for reader in self._readers:
            reader.close()

    def _wait_for_report(self, data: Sequence[bytes]) -> None:
        """Wait a little for the report of one write, where both streams were written to.

        A program that loses its core between a write and the report is behind with the report: its
        newest line would seem to be part of an older write. Then there is one line more than
        reports. Several lines more are a write of many lines, or writes in a row with one report.
        """
        if self._watch is None or not (all(data) or len(set(self._writes)) > 1):
            return
        lines = [new.count(b"\n") for new in data]
        until = time.monotonic() + _LATE_SECONDS
        while self._unreported(lines) == 1 and time.monotonic() < until:
            time.sleep(_SETTLE_SECONDS)
            self._writes += self._watch.read()

    def _unreported(self, lines: Sequence[int]) -> int:
        """Return how many of the new lines of each stream exceed its reported writes, in all."""
        return sum(max(n - self._writes.count(place), 0) for place, n in enumerate(lines))

    def _drop_own_event(self, place: int) -> None:
        """Discard the report of a change that this process made itself."""
        reported = self._watch.read() if self._watch else []
        if place in reported:
            reported.remove(place)
        self._writes += reported

    def _feed(self, place: int, data: bytes) -> None:
        """Cut new data into lines, and append them to the stream's queue."""
        lines, rest = self._splitters[place].feed(data)
        if lines:
            # The start of the line that was not shown yet is shown with the line.
            first = lines[0]._replace(raw=self._rests[place] + lines[0].raw)
            self._lines[place] += [first, *lines[1:]]
            self._rests[place] = b""
        self._rests[place] += rest

    def _rest_of(self, place: int) -> bytes:
        """Return the unfinished line, to be shown now; empty while earlier lines wait."""
        if self._lines[place]:
            return b""
        rest, self._rests[place] = self._rests[place], b""
        return rest
