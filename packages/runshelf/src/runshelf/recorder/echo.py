"""Forwards the program's output to our stdout and stderr without blocking the recorder.

A reader may be slow, or may have closed the pipe. Output that it has not read waits in a buffer.
"""

import os
import select
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import final

from runshelf.recorder.lines import Line, StreamName

_BUFFER_BYTES = 1 << 20
_stream = itemgetter(0)


@final
class Echo:
    """Writes to descriptors in order, without blocking, and buffers the rest."""

    def __init__(self, descriptors: Mapping[StreamName, int]) -> None:
        self._descriptors = dict(descriptors)
        self._atomic = {d: _atomic_bytes(d) for d in self._descriptors.values()}
        self._waiting: deque[tuple[StreamName, memoryview]] = deque()
        self._waiting_bytes = 0
        self.problems: dict[StreamName, str] = {}

    @property
    def has_room(self) -> bool:
        """Whether the buffer accepts more output."""
        return self._waiting_bytes < _BUFFER_BYTES

    def waits_for(self) -> list[int]:
        """Return the descriptor that must become writable before more can be shown."""
        return [self._descriptors[stream] for stream, _ in list(self._waiting)[:1]]

    def show(self, lines: Sequence[Line], rests: Mapping[StreamName, bytes]) -> None:
        """Show lines, then unfinished lines, without blocking."""
        for stream, some in groupby(lines, _stream):
            self._add(stream, b"".join([line.raw for line in some]))
        for stream, rest in rests.items():
            self._add(stream, rest)
        self.write()

    def write(self) -> None:
        """Write buffered output, without blocking."""
        while self._waiting and self._write_some(0):
            pass

    def drain(self) -> None:
        """Write all buffered output, and block until it is written."""
        while self._waiting:
            self._write_some(None)

    def _add(self, stream: StreamName, data: bytes) -> None:
        if data and stream in self._descriptors:
            self._waiting.append((stream, memoryview(data)))
            self._waiting_bytes += len(data)

    def _write_some(self, milliseconds: int | None) -> bool:
        """Write as much as does not block; return whether anything was written."""
        stream, data = self._waiting[0]
        descriptor = self._descriptors[stream]
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        if not poll.poll(milliseconds):
            return False
        try:
            done = os.write(descriptor, data[: self._atomic[descriptor]])
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._forget(stream)  # the reader closed the pipe, as `| head` does
            return True
        except OSError as error:
            self.problems[stream] = str(error.strerror)
            done = len(data)
        self._waiting_bytes -= done
        if done < len(data):
            self._waiting[0] = (stream, data[done:])
        else:
            self._waiting.popleft()
        return True

    def _forget(self, stream: StreamName) -> None:
        del self._descriptors[stream]
        self._waiting = deque(item for item in self._waiting if item[0] != stream)
        self._waiting_bytes = sum(len(data) for _, data in self._waiting)


def _atomic_bytes(descriptor: int) -> int:
    """Return how many bytes a writable descriptor accepts without blocking."""
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        is_file = False
    return _BUFFER_BYTES if is_file else select.PIPE_BUF
