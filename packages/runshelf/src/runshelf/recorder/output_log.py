"""Writes `output.log`: all that a program printed, line by line, with time and stream.

    <seconds since the start>TAB<out|err>TAB<end in that stream>TAB<text>

A line longer than 64 KiB is cut: all pieces but the last are marked `out+` or `err+`. The third
column tells a reader where the uncopied rest of a stream begins if the recorder was killed.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import final

from runshelf.recorder.lines import LONGEST, STREAMS, Line
from runshelf.snapshot.secrets import MASK
from runshelf.store.files import disk_errors
from runshelf.store.writing import open_in_place

OUTPUT = "output.log"
_MAX_WAITING = 4 << 20
_SHORTEST = 8  # characters of a line of a secret


@final
class OutputWriter:
    """Appends to `output.log`, one write per batch; retries later what a full disk refuses."""

    def __init__(self, folder: Path, hidden: Iterable[str] = ()) -> None:
        """Open the file.

        Args:
            folder: the run's folder.
            hidden: secrets that are masked in the lines.
        """
        self._hidden = _lines_of(hidden)
        self._path = folder / OUTPUT
        self._descriptor = open_in_place(folder, OUTPUT, appends=True)
        with disk_errors(self._path):
            self._size = _cut_torn_line(self._descriptor)
        self._waiting = b""
        self.lost_lines = 0
        self.problem = ""

    def write(self, seconds: float, lines: Sequence[Line]) -> None:
        """Append lines; lines that cannot be written wait for the next call."""
        self._waiting += format_lines(seconds, self._masked(lines))
        if self._append(self._waiting):
            self._waiting = b""
        elif len(self._waiting) > _MAX_WAITING:
            end = self._waiting.index(b"\n", len(self._waiting) - _MAX_WAITING) + 1
            self.lost_lines += self._waiting.count(b"\n", 0, end)
            self._waiting = self._waiting[end:]

    @property
    def waiting_lines(self) -> int:
        """The number of lines that wait to be written."""
        return self._waiting.count(b"\n")

    def close(self) -> None:
        """Close the file; lines that still wait are lost."""
        self.write(0.0, [])
        self.lost_lines += self.waiting_lines
        os.close(self._descriptor)

    def _masked(self, lines: Sequence[Line]) -> Sequence[Line]:
        """Return lines with the secrets masked."""
        if not self._hidden or not lines:
            return lines
        printed = b"\n".join([line.text for line in lines])
        for value in self._hidden:
            if value in printed:
                mask = MASK.encode()
                lines = [line._replace(text=line.text.replace(value, mask)) for line in lines]
        return lines

    def _append(self, data: bytes) -> bool:
        """Append all of `data`, or none of it; return whether it was appended."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self.problem = str(error.strerror)
            os.ftruncate(self._descriptor, self._size)
            return False
        self._size += len(data)
        return True


def _lines_of(hidden: Iterable[str]) -> list[bytes]:
    """Return the lines of secrets, longest first; short lines, which others may have, are left."""
    lines = {line.strip() for value in hidden for line in value.splitlines()}
    known = {line.encode(errors="surrogateescape") for line in lines if len(line) >= _SHORTEST}
    return sorted(known, key=len, reverse=True)


def format_lines(seconds: float, lines: Sequence[Line]) -> bytes:
    """Return lines in the format of `output.log`."""
    heads = {
        (stream, is_cut): b"%.3f\t%s%s\t" % (seconds, stream.encode(), b"+" if is_cut else b"")
        for stream in STREAMS
        for is_cut in (False, True)
    }
    return b"".join(
        [
            b"%s%d\t%s\n" % (heads[stream, is_cut], end, text)
            for stream, end, text, _, is_cut in lines
        ]
    )


def _cut_torn_line(descriptor: int) -> int:
    """Remove an incomplete last line, which a kill leaves, and return the file's size."""
    size = os.fstat(descriptor).st_size
    start = max(size - 2 * LONGEST, 0)
    end = start + os.pread(descriptor, size - start, start).rfind(b"\n") + 1
    if end < size:
        os.ftruncate(descriptor, end)
    return end
