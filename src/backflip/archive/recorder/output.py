"""`output.log`: everything a program printed, one line per line, with its time and stream.

    <seconds since the start>TAB<out|err>TAB<end in that stream>TAB<text>

A line longer than 64 KiB is cut: all but its last piece are marked `out+` or `err+`. The third
column says up to where each stream has been taken over, so that what a killed recorder left can be
appended later, once.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

from backflip.archive.files import disk_errors
from backflip.archive.recorder.lines import STREAMS, Line, StreamName

OUTPUT = "output.log"
_KEPT_FOR_LATER = 4 << 20
_CHUNK = 1 << 20


@final
class OutputLine(NamedTuple):
    """One line of `output.log`.

    Attributes:
        seconds: since the start of the run.
        stream: `out` or `err`.
        text: what it says; bytes that are no UTF-8 are replaced.
        is_cut: it goes on in the stream's next line.
        end: where in `output.log` the next line begins; to be read from there later.
    """

    seconds: float
    stream: StreamName
    text: str
    is_cut: bool
    end: int


def read_output(folder: Path, start: int = 0, most: int | None = None) -> list[OutputLine]:
    """Return the lines of a run's output; none where there is no file. Others' lines are skipped.

    Args:
        folder: the run's folder.
        start: where in the file to begin, as an earlier line's `end` said.
        most: bytes to read at most; by default all there are.

    Raises:
        BackflipError: the file cannot be read.
    """
    path = folder / OUTPUT
    with disk_errors(path):
        if not path.is_file():
            return []
        with path.open("rb") as file:
            file.seek(max(start, 0))
            data = file.read(-1 if most is None else most)
    lines: list[OutputLine] = []
    end = max(start, 0)
    for text in data.split(b"\n")[:-1]:
        end += len(text) + 1
        line = _parse(text, end)
        if line is not None:
            lines.append(line)
    return lines


def recorded_up_to(folder: Path) -> dict[StreamName, int]:
    """Return how far each stream has been recorded, and close what a kill cut short."""
    path = folder / OUTPUT
    found = dict.fromkeys(STREAMS, 0)
    with disk_errors(path):
        if not path.is_file():
            return found
        with path.open("r+b") as file:
            _cut_torn_line(file)
            missing = set(STREAMS)
            for line in _lines_backwards(file):
                stream, end = _end_of(line)
                if stream in missing:
                    found[stream] = end
                    missing.remove(stream)
                if not missing:
                    break
    return found


def _cut_torn_line(file: BinaryIO) -> None:
    """Remove what stands behind the last line's end."""
    for _, start, data in _chunks_backwards(file):
        if b"\n" in data:
            file.truncate(start + data.rindex(b"\n") + 1)
            return
    file.truncate(0)


def _lines_backwards(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file from the last to the first."""
    rest = b""
    for is_first, _, data in _chunks_backwards(file):
        head, *lines = (data + rest).split(b"\n")
        yield from reversed(lines)
        rest = head
        if is_first:
            yield rest


def _chunks_backwards(file: BinaryIO) -> Iterator[tuple[bool, int, bytes]]:
    """Yield pieces of a file from its end on: whether it is the first, its start, and itself."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(end - _CHUNK, 0)
        file.seek(start)
        yield start == 0, start, file.read(end - start)
        end = start


def _end_of(line: bytes) -> tuple[StreamName | None, int]:
    """Return up to where of which stream a line of `output.log` reaches; None if it is no such."""
    fields = line.split(b"\t", 3)
    if len(fields) == 4 and fields[2].isdigit():
        for stream in STREAMS:
            if fields[1].rstrip(b"+") == stream.encode():
                return stream, int(fields[2])
    return None, 0


@final
class OutputWriter:
    """Appends to `output.log`, one write a batch; keeps what a full disk refuses, for a while."""

    def __init__(self, folder: Path) -> None:
        """Open the file in a run's folder.

        Raises:
            BackflipError: it cannot be opened.
        """
        self._path = folder / OUTPUT
        with disk_errors(self._path):
            self._descriptor = os.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666
            )
        self._size = os.fstat(self._descriptor).st_size
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self.lost_lines = 0
        self.problem = ""

    def write(self, seconds: float, lines: Sequence[Line]) -> None:
        """Append lines; if that is not possible now, they wait for the next call."""
        if not lines and not self._waiting:
            return
        data = _format(seconds, lines)
        if self._waiting:
            self._wait(data)
            self._write_waiting()
        elif data and not self._append(data):
            self._wait(data)

    @property
    def waiting_lines(self) -> int:
        """How many lines have not been written yet."""
        return sum(data.count(b"\n") for data in self._waiting)

    def close(self) -> None:
        """Close the file; what still waits is lost."""
        self._write_waiting()
        self.lost_lines += self.waiting_lines
        self._waiting.clear()
        os.close(self._descriptor)

    def _write_waiting(self) -> None:
        while self._waiting and self._append(self._waiting[0]):
            self._waiting_bytes -= len(self._waiting.popleft())

    def _wait(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        while self._waiting_bytes > _KEPT_FOR_LATER and len(self._waiting) > 1:
            dropped = self._waiting.popleft()
            self._waiting_bytes -= len(dropped)
            self.lost_lines += dropped.count(b"\n")

    def _append(self, data: bytes) -> bool:
        """Append all of `data`, or nothing of it."""
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


def _format(seconds: float, lines: Sequence[Line]) -> bytes:
    """Return lines as they are written."""
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


def _parse(text: bytes, end: int) -> OutputLine | None:
    fields = text.split(b"\t", 3)
    if len(fields) != 4:
        return None
    stream = fields[1].removesuffix(b"+")
    try:
        seconds = float(fields[0])
    except ValueError:
        return None
    for name in STREAMS:
        if stream == name.encode():
            said = fields[3].decode(errors="replace")
            return OutputLine(seconds, name, said, fields[1].endswith(b"+"), end)
    return None
