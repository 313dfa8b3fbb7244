"""Salvage: what a killed recorder had not copied yet is taken over from its spool."""

import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from backflip.archive.recorder.holding import release
from backflip.archive.recorder.lines import STREAMS, Line, Splitter, StreamName
from backflip.archive.recorder.output_log import OutputWriter, recorded_up_to
from backflip.archive.recorder.spool import Spool, SpoolReader, find_spool, spool_folders
from backflip.core.errors import BackflipError

_LOCK = "lock"
_QUICK_BYTES = 1 << 25  # of output: some seconds, if all its lines are short


def salvage(folder: Path) -> bool:
    """Append to a run's `output.log` what its recorder has left behind, once.

    A program that the recorder had stopped is continued.

    Nothing is done while a recorder writes the run, or where this user may not write it. While the
    program goes on alone, what it has printed is taken, and the spool is left to it.

    Args:
        folder: the run's folder.

    Returns:
        Whether anything was there to be taken.
    """
    found = find_spool(folder)
    if found is None:
        return False
    with suppress(OSError, BackflipError), _locked(folder) as is_ours:
        if is_ours:
            return _take_over(folder, *found)
    return False


def salvage_all() -> None:
    """Salvage every run of this user's whose recorder was killed, and clear what none needs.

    Much of it is left to whoever looks at that run: another program waits to be started.
    """
    for path in spool_folders():
        with suppress(OSError, ValueError, KeyError, TypeError):
            about: dict[str, Any] = json.loads((path / "run.json").read_bytes())
            run = Path(about["folder"])
            if run.name == path.name.rpartition("-")[2] and run.is_dir():
                if _taken_by(Spool(path)) <= _QUICK_BYTES:
                    salvage(run)
            elif run.parent.is_dir() and not run.exists() and not _is_printed_into(Spool(path)):
                Spool(path).remove()


def _take_over(folder: Path, spool: Spool, started: float) -> bool:
    release(spool.folder)
    goes_on = _is_printed_into(spool)
    ends = recorded_up_to(folder)
    printed = max(spool.path(stream).stat().st_mtime for stream in STREAMS)
    log, took = OutputWriter(folder), False
    try:
        for stream in STREAMS:
            for lines in _left_of(spool, stream, ends[stream], goes_on):
                log.write(printed - started, lines)
                took = took or bool(lines)
    finally:
        log.close()
    if not goes_on and not log.lost_lines:
        spool.remove()
    if took:
        os.utime(folder)
    return took


def _left_of(
    spool: Spool, stream: StreamName, start: int, goes_on: bool
) -> Generator[list[Line], None, None]:
    """Yield the lines of a stream from a position on; a last one not ended only at the end.

    Who prints without end is not waited for: there is what there is now.
    """
    reader, splitter = SpoolReader(spool, stream, start), Splitter(stream, start)
    try:
        until = reader.position + reader.backlog
        while (not goes_on or reader.position < until) and (data := reader.read()):
            yield splitter.feed(data)[0]
    finally:
        reader.close()
    if not goes_on:
        yield splitter.flush()


def _taken_by(spool: Spool) -> int:
    """Return the bytes that a spool takes; what was copied has been given back."""
    return sum(spool.path(stream).stat().st_blocks * 512 for stream in STREAMS)


def _is_printed_into(spool: Spool) -> bool:
    """Return whether a process has the spool open to print into."""
    for stream in STREAMS:
        reader = SpoolReader(spool, stream)
        try:
            if reader.is_written():
                return True
        finally:
            reader.close()
    return False


@contextmanager
def _locked(folder: Path) -> Generator[bool, None, None]:
    """Hold a run's lock; yield whether it could be had."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(3):
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield True
                return
            time.sleep(0.01)  # who only looks whether it is held holds it for that moment
        yield False
    finally:
        os.close(descriptor)
