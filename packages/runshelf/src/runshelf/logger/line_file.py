"""The file of metric lines of this process: each line is one write, and a thread syncs them."""

import atexit
import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable
from typing import final

from runshelf.logger import script
from runshelf.logger.problems import Refused, problems
from runshelf.store.own_descriptor import OwnDescriptor

SYNC_SECONDS = 3.0
RETRY_SECONDS = 10.0


@final
class LineFile:
    """The log file of this process, opened at the first line.

    Args:
        before_end: called at the end of the program, while the file is still open.
    """

    def __init__(self, before_end: Callable[[], None]) -> None:
        self._before_end = before_end
        self.forget()

    def forget(self) -> None:
        """Reset all state; a forked process calls this, since the parent keeps the file."""
        self.lock = threading.RLock()  # reentrant, since a signal handler may log, too
        self.folder = ""
        self._file: OwnDescriptor | None = None
        self._torn = False
        self._is_dirty = False
        self._is_opening = False
        self._failed: tuple[float, Exception] | None = None
        self._stopped = threading.Event()
        self._syncer: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        """Append a line in one write.

        Raises:
            OSError: the line is missing in the file or incomplete.
            UserFacingError: there is no run to write to.
        """
        with self.lock:
            descriptor = self._opened().number
            if self._torn:
                line = b"\n" + line
            self._torn = True  # until the whole line is in the file
            rest = line[os.write(descriptor, line) :]
            while rest:  # only when the disk fills up
                rest = rest[os.write(descriptor, rest) :]
            self._torn = False
            self._is_dirty = True

    def open(self) -> str:
        """Open the file if it is closed; return the run's folder.

        Raises:
            OSError: the file cannot be created.
            UserFacingError: the run cannot be created.
        """
        with self.lock:
            self._opened()
            return self.folder

    def _opened(self) -> OwnDescriptor:
        """Return the open file; open one if there is none, or the program has closed it."""
        if self._file is not None and self._file.is_open():
            return self._file
        if self._is_opening:
            raise Refused("a signal handler logs while the run is created", "reentrant")
        if self._failed and time.monotonic() - self._failed[0] < RETRY_SECONDS:
            raise self._failed[1]
        self._is_opening = True
        try:
            self.folder = script.find_or_make_run(self.close)
            self._file = OwnDescriptor(script.open_lines(self.folder))
            self._failed = None
            # Registered after the end of the run, so that it runs before it.
            atexit.register(self._before_end)
        except Exception as error:
            self._failed = (time.monotonic(), error)
            raise
        finally:
            self._is_opening = False
        self._torn = False
        self.begin_syncing()
        return self._file

    def begin_syncing(self) -> None:
        """Start the thread that syncs the file, so that lines survive a power cut."""
        if self._file is None:
            return
        self._stopped = threading.Event()
        self._syncer = threading.Thread(
            target=self._sync, args=[self._stopped], name="runshelf-sync", daemon=True
        )
        with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
            self._syncer.start()

    def pause_syncing(self) -> None:
        """Stop the thread: a process with another thread must not fork."""
        self._stopped.set()
        if self._syncer is not None and self._syncer.is_alive():
            self._syncer.join(0.1)

    def close(self) -> None:
        """Close the file; the next line opens another."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _sync(self, stopped: threading.Event) -> None:
        while not stopped.wait(SYNC_SECONDS):
            if self._is_dirty:
                self._is_dirty = False
                self._sync_once()

    def _sync_once(self) -> None:
        file = self._file
        if file is None or not file.is_open():
            return  # closed by this module or by the program: nothing is lost
        try:
            if os.fstat(file.number).st_nlink == 0:
                with self.lock:
                    self.close()
                raise Refused(f"run `{self.folder}` was removed: opening a new file", "removed")
            os.fsync(file.number)
        except (OSError, Refused) as error:
            # EBADF: closed in the meantime.
            if not isinstance(error, OSError) or error.errno != errno.EBADF:
                problems.note(error)
