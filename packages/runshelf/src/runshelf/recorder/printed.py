"""What a program prints, when that is no terminal: read from its spool, in the order it came."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import final

from runshelf.recorder.lines import STREAMS, Line, Splitter, StreamName, in_order
from runshelf.recorder.linux import Watch
from runshelf.recorder.spool import CHUNK, Spool, SpoolReader

_SETTLE_SECONDS = 0.002

# Given lines, and what of each stream belongs to a line not ended yet.
Take = Callable[[list[Line], dict[StreamName, bytes]], None]


@final
class SpooledOutput:
    """Both streams of a program, from its spool."""

    def __init__(self, spool: Spool) -> None:
        """Begin to watch, before the program starts."""
        self._readers = [SpoolReader(spool, stream) for stream in STREAMS]
        self._splitters = [Splitter(stream) for stream in STREAMS]
        self._told: list[int] = []
        self._lines = [deque[Line]() for _ in STREAMS]
        self._rests = [b"" for _ in STREAMS]
        self._watch: Watch | None = None
        with suppress(OSError):
            self._watch = Watch([spool.path(stream) for stream in STREAMS])

    @property
    def times_emptied(self) -> int:
        """How often the program has emptied its own output."""
        return sum(reader.times_emptied for reader in self._readers)

    @property
    def backlog(self) -> int:
        """How many bytes have been printed and not been read."""
        return sum(reader.backlog for reader in self._readers)

    @property
    def descriptor(self) -> int | None:
        """What can be read once something was printed; None where one has to look."""
        return None if self._watch is None else self._watch.descriptor

    def read(self, take: Take) -> bool:
        """Take what is new; return whether there may be more."""
        self._told += self._watch.read() if self._watch else []
        seen = len(self._told)
        data = [reader.read() for reader in self._readers]
        is_full = any(len(new) >= CHUNK for new in data)
        if any(data) and (all(data) or not is_full):
            # What was written is visible a moment before it is reported.
            time.sleep(_SETTLE_SECONDS)
        # All writes before these reads are reported by now, and some of those after them.
        self._told += self._watch.read() if self._watch else []
        for place, new in enumerate(data):
            self._feed(place, new)
        lines, done = in_order(self._lines, self._told, seen)
        del self._told[:done]
        rests = dict[StreamName, bytes]()
        for place, stream in enumerate(STREAMS):
            rests[stream] = self._rest_of(place)
        if lines or any(rests.values()):
            take(lines, rests)
        for place, reader in enumerate(self._readers):
            start = self._splitters[place].pending_start
            if not self._lines[place] and reader.release(start):
                self._drop_own_event(place)
        return is_full or any(self._lines)

    def finish(self, take: Take) -> None:
        """Take everything there is, and lines that were never ended."""
        # A process that was left behind may print for ever: what there is now must do.
        left = self.backlog
        while left > 0:
            before = self.backlog
            self.read(take)
            left -= max(before - self.backlog, 1)
        while self.read(take) and any(self._lines):
            pass
        take([line for splitter in self._splitters for line in splitter.flush()], {})

    def close(self) -> None:
        """Watch and read no more."""
        if self._watch is not None:
            self._watch.close()
        for reader in self._readers:
            reader.close()

    def _drop_own_event(self, place: int) -> None:
        """Drop the report of a change that we have made ourselves."""
        reported = self._watch.read() if self._watch else []
        if place in reported:
            reported.remove(place)
        self._told += reported

    def _feed(self, place: int, data: bytes) -> None:
        """Cut what is new into lines that wait for their turn."""
        lines, rest = self._splitters[place].feed(data)
        if lines:
            # What was held back of the beginning of a line is shown with the line.
            first = lines[0]._replace(raw=self._rests[place] + lines[0].raw)
            self._lines[place] += [first, *lines[1:]]
            self._rests[place] = b""
        self._rests[place] += rest

    def _rest_of(self, place: int) -> bytes:
        """Return the beginning of a line to be shown now, unless lines before it wait."""
        if self._lines[place]:
            return b""
        rest, self._rests[place] = self._rests[place], b""
        return rest
