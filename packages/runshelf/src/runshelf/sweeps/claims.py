"""Claims: which worker runs a block. A claim is never given to two live workers.

The first claim of a block is the file `NAME.claim-1`, the next `NAME.claim-2`, and so on. A file is
made by a hard link, so that of several workers, on several machines, one succeeds. The worker that
made the newest file has the block. It may be taken over, with the next file, if its holder has
released it or is gone:

- A holder on this machine is gone if its process is, and if no process holds the lock of the block.
  The program of the block inherits the lock, so it holds after a `kill -9` of the worker.
- A holder on another machine is gone if it has not touched its file for a minute, as measured by
  the clock of the observer: clocks are never compared.
"""

import contextlib
import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.liveness import BEAT_SECONDS, SILENCE_SECONDS, Process, is_alive, process
from runshelf.store.opening import NoFile, opened, read_whole
from runshelf.store.writing import open_in_place, replace_file, touch, write_once
from runshelf.sweeps.results import BLOCKS, done_name

_CLAIM = re.compile(r"(?P<block>.+)\.claim-(?P<number>[1-9][0-9]{0,6})")


@final
class Holder(NamedTuple):
    """The content of the newest claim of a block.

    Attributes:
        number: which claim of the block it is.
        worker: the process that made it; None if the file is damaged.
        released: the worker has given it up.
        touched: when the file was last touched, by the clock of the file system.
    """

    number: int
    worker: Process | None
    released: bool
    touched: float


@final
class Claim:
    """A block that this process runs.

    Attributes:
        block: the name of the block.
        number: which claim of the block it is; above 1, another worker may have begun the block.
        lock: a descriptor that the program of the block inherits.
    """

    def __init__(self, folder: Path, block: str, number: int, lock: int) -> None:
        self.block, self.number, self.lock = block, number, lock
        self._folder, self._path = folder, _path(block, number)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="claim", daemon=True)
        self._thread.start()

    def is_newest(self) -> bool:
        """Return whether no other worker has taken the block over, as after a long sleep."""
        return newest_claims(self._folder).get(self.block, 0) == self.number

    def release(self, *, done: bool) -> None:
        """Give the block up; without `done`, another worker may take it at once."""
        self._stopped.set()
        self._thread.join()
        if not done:
            with contextlib.suppress(UserFacingError):  # a full disk: the process will end
                replace_file(self._folder, self._path, _content(released=True))
        os.close(self.lock)

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            touch(self._folder, self._path)


@final
class Claims:
    """Takes claims of the blocks of a sweep.

    Args:
        folder: the folder of the sweep.
        clock: seconds that only grow.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._seen: dict[str, tuple[Holder, float]] = {}

    def take(self, block: str) -> Claim | None:
        """Return a claim of a block; None if it is done, or if another worker has it.

        Raises:
            UserFacingError: the disk is full, or the folder cannot be written.
        """
        before = newest_claims(self._folder).get(block, 0)
        if before and self.is_held(block, before):
            return None
        lock = open_in_place(self._folder, f"{BLOCKS}/{block}.lock")
        try:
            if _lock(lock) and not self._is_done(block):
                number = before + 1
                if write_once(self._folder, _path(block, number), _content(released=False)):
                    return Claim(self._folder, block, number, lock)
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        return None

    def is_held(self, block: str, number: int) -> bool:
        """Return whether the holder of a claim may be alive."""
        holder = read_holder(self._folder, block, number)
        if holder is None or holder.released or holder.worker is None:
            return False
        alive = is_alive(holder.worker)
        return self._has_been_heard(block, holder) if alive is None else alive

    def _has_been_heard(self, block: str, holder: Holder) -> bool:
        """Return whether the file of a claim changed within the last minute of this process."""
        now = self._clock()
        before, since = self._seen.get(block, (None, now))
        if before != holder:
            self._seen[block] = (holder, now)
            return True
        return now - since < SILENCE_SECONDS

    def _is_done(self, block: str) -> bool:
        return read_whole(self._folder, done_name(block)) is not None


def newest_claims(folder: Path) -> dict[str, int]:
    """Return the number of the newest claim of each block that was ever claimed."""
    found: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder / BLOCKS):
            if match := _CLAIM.fullmatch(entry.name):
                found[match["block"]] = max(found.get(match["block"], 0), int(match["number"]))
    return found


def read_holder(folder: Path, block: str, number: int) -> Holder | None:
    """Return the content of a claim; None if there is no such file."""
    path = _path(block, number)
    try:
        with opened(folder, path) as file:
            touched = os.fstat(file).st_mtime
        fields = parse_record(read_whole(folder, path) or b"")
    except NoFile:
        return None
    except ValueError:
        return Holder(number, None, released=False, touched=0.0)
    try:
        worker = Process(**fields["worker"])
    except (KeyError, TypeError):
        worker = None
    return Holder(number, worker, bool(fields.get("released")), touched)


def _path(block: str, number: int) -> str:
    return f"{BLOCKS}/{block}.claim-{number}"


def _content(*, released: bool) -> bytes:
    return json.dumps({"worker": process()._asdict(), "released": released}).encode() + b"\n"


def _lock(descriptor: int) -> bool:
    """Lock a file; return False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
