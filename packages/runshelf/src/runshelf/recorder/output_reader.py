"""Reads what a run printed: `output.log`, then the spool of a recorder that was killed.

Nothing is written. The uncopied part of the spool is returned as if it stood at the end of
`output.log`, in the same format. So positions are stable once the program has ended.
"""

import math
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final

from runshelf.recorder.lines import LONGEST, STREAMS, Splitter, StreamName
from runshelf.recorder.output_log import OUTPUT, format_lines
from runshelf.recorder.spool import rest_of, started_at
from runshelf.store import opening
from runshelf.store.run import Run, is_locked


@final
class OutputLine(NamedTuple):
    """One line that a run printed.

    Attributes:
        seconds: time since the start of the run.
        stream: `out` or `err`.
        text: the text; bytes that are not UTF-8 are replaced.
        is_cut: the line continues in the stream's next line.
        end: the position at which the next line begins.
    """

    seconds: float
    stream: StreamName
    text: str
    is_cut: bool
    end: int


def read_output(folder: Path, start: int = 0, most: int | None = None) -> list[OutputLine]:
    """Return the lines that a run printed; lines in another format are skipped.

    Args:
        folder: the run's folder.
        start: the position to begin at: the `end` of an earlier line.
        most: the maximum number of bytes to read; all by default.
    """
    end = max(start, 0)
    data, _ = read_part(folder, end, 1 << 62 if most is None else most)
    lines: list[OutputLine] = []
    for text in data.split(b"\n")[:-1]:
        end += len(text) + 1
        lines += _parse(text, end)
    return lines


def read_part(folder: Path, start: int, most: int) -> tuple[bytes, int]:
    """Return up to `most` bytes of a run's output from `start` on, and the total size.

    A run that printed nothing has size 0.
    """
    try:
        data, size = opening.read_part(folder, OUTPUT, start, most)
    except opening.NoFile:
        data, size = b"", 0
    rest = _unrecorded(folder)
    if not rest:
        return data, size
    end, _ = _recorded(folder)  # a kill may have left half of a line after it
    data = data[: max(end - start, 0)] + rest[max(start - end, 0) :]
    return data[:most], end + len(rest)


def recorded_up_to(folder: Path) -> dict[StreamName, int]:
    """Return how many bytes of each stream are in a run's `output.log`."""
    return _recorded(folder)[1]


def seconds_of_last_line(folder: Path) -> float:
    """Return the time of the last complete line of a run's `output.log`; 0 if there is none."""
    with suppress(opening.NoFile):
        _, size = opening.read_part(folder, OUTPUT, 0, 0)
        start = max(size - 4 * LONGEST, 0)
        data, _ = opening.read_part(folder, OUTPUT, start, size - start)
        for line in reversed(data.split(b"\n")[:-1]):
            if found := _parse(line, 0):
                return found[0].seconds if math.isfinite(found[0].seconds) else 0.0
    return 0.0


def _recorded(folder: Path) -> tuple[int, dict[StreamName, int]]:
    """Return where the last complete line of `output.log` ends, and the end of each stream."""
    found: dict[StreamName, int] = {}
    with suppress(opening.NoFile), opening.opened(folder, OUTPUT) as file:
        if os.fstat(file).st_size:
            with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as data:
                whole = data.rfind(b"\n") + 1
                for line in _lines_backwards(data, whole):
                    stream, end = _end_of(line)
                    if stream:
                        found.setdefault(stream, end)
                    if len(found) == len(STREAMS):
                        break
                return whole, {stream: found.get(stream, 0) for stream in STREAMS}
    return 0, dict.fromkeys(STREAMS, 0)


def _lines_backwards(data: mmap.mmap, end: int) -> Iterator[bytes]:
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        yield data[start:end]
        end = start


def _unrecorded(folder: Path) -> bytes:
    """Return what a killed recorder did not copy, in the format of `output.log`."""
    try:
        started = started_at(folder)
    except opening.NoFile:
        return b""
    if is_locked(Run(folder, {})):  # its recorder is running
        return b""
    ends, rest = recorded_up_to(folder), b""
    for stream in STREAMS:
        with suppress(opening.NoFile):
            data, printed = rest_of(folder, stream, ends[stream])
            splitter = Splitter(stream, ends[stream])
            lines, _ = splitter.feed(data)
            rest += format_lines(max(printed - started, 0.0), [*lines, *splitter.flush()])
    return rest


def _end_of(line: bytes) -> tuple[StreamName | None, int]:
    """Return the stream of a line of `output.log`, and its end in that stream."""
    fields = line.split(b"\t", 3)
    if len(fields) == 4 and fields[2].isdigit():
        return _stream_of(fields[1]), int(fields[2])
    return None, 0


def _stream_of(field: bytes) -> StreamName | None:
    name = field.removesuffix(b"+")
    return next((stream for stream in STREAMS if name == stream.encode()), None)


def _parse(text: bytes, end: int) -> list[OutputLine]:
    """Return a line of `output.log`; nothing if its format is invalid."""
    with suppress(ValueError):
        seconds, kind, _, content = text.split(b"\t", 3)
        if stream := _stream_of(kind):
            decoded = content.decode(errors="replace")
            return [OutputLine(float(seconds), stream, decoded, kind.endswith(b"+"), end)]
    return []
