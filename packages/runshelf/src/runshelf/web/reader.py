"""Reads a home for all pages: the index in one thread, files in some.

The event loop never waits for a disk. Another process refreshes the index, so a request may read an
index that is a few seconds old, but does not wait.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

from runshelf.errors import UserFacingError
from runshelf.index.rows import Keys
from runshelf.index.run_index import Index, open_index
from runshelf.web.cache import Cache
from runshelf.web.pages.home_page import IndexSummary, summarise_index
from runshelf.web.pages.runs_table import STATES
from runshelf.web.serving.bounded_log import report
from runshelf.web.serving.index_worker import PROGRAM
from runshelf.web.serving.worker_process import Busy, WorkerProcess

T = TypeVar("T")

REFRESH_SECONDS = 2.0
# Requests are refused while this many wait for a thread.
MOST_WAITING = 64
# Each of them may parse almost `large_runs.LARGE_BYTES` at once.
_FILE_THREADS = 4
_SILENT_SECONDS = 600.0  # of a refresh; one folder may take long
_TABLE_BYTES = 2**17  # approximate size of a page of the table


def digest(value: object) -> str:
    """Return a short digest of a value's `repr`."""
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:12]


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so many seconds."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


@final
class Reader:
    """Reads the home. Create it with `open`."""

    def __init__(self, home: Path) -> None:
        """Create the threads; nothing is read yet."""
        self.home = home
        self.cache = Cache()
        self.reading = ""
        # Live updates compare these to detect changes.
        self.refreshed = 0
        self.digest = ""
        self.is_running = False
        self._index: Index | None = None
        self._second: Index | None = None
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._files = ThreadPoolExecutor(_FILE_THREADS, thread_name_prefix="files")
        self._summaries = ThreadPoolExecutor(1, thread_name_prefix="summary")
        self._worker = WorkerProcess(PROGRAM, home, "that reads run folders", _SILENT_SECONDS)
        self._waiting = 0
        self._summary: IndexSummary | None = None

    @classmethod
    async def open(cls, home: Path) -> "Reader":
        """Open the index of a home.

        Raises:
            UserFacingError: the index cannot be opened.
        """
        reader = cls(home)
        loop = asyncio.get_running_loop()
        reader._index = await loop.run_in_executor(reader._queries, open_index, home)
        return reader

    async def close(self) -> None:
        """End the process that reads folders, and the threads after their current work."""
        await self._worker.close()
        self._files.shutdown(wait=False, cancel_futures=True)
        if self._second is not None:
            await asyncio.get_running_loop().run_in_executor(self._summaries, self._second.close)
        await self.query(lambda index: index.close())
        for threads in (self._summaries, self._queries):
            threads.shutdown()

    async def query(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the index in its thread; return the result.

        Raises:
            Busy: too many requests are waiting.
        """
        index = self._index
        assert index is not None
        return await self._run(self._queries, lambda: work(index))

    async def query_cached(self, key: object, work: Callable[[Index], T]) -> T:
        """Like `query`, but return the cached result if the index has not changed.

        Args:
            key: identifies `work` in the cache.
            work: reads the index; callers must not modify its result.

        Raises:
            Busy: too many requests are waiting.
        """

        def cached(index: Index) -> T:
            version = index.version()
            known = None if version is None else self.cache.get((key, version))
            if known is not None:
                return known
            found = work(index)
            return found if version is None else self.cache.put((key, version), found, _TABLE_BYTES)

        return await self.query(cached)

    async def keys(self) -> Keys:
        """Return the keys for filters and table columns."""
        return await self.query_cached("keys", lambda index: index.keys())

    async def summary(self) -> IndexSummary:
        """Return the index part of the home page's summary as of the last refresh.

        Before the first refresh the index may still be empty, so the result is not cached.
        """
        return self._summary or await self.query(summarise_index)

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work`, which reads files, in a thread; return the result.

        Raises:
            Busy: too many requests are waiting.
        """
        return await self._run(self._files, work)

    async def keep_fresh(self) -> None:
        """Refresh the index periodically until cancelled."""
        while True:
            began = time.monotonic()
            try:
                await self._refresh()
            except UserFacingError as error:
                report(f"runshelf: {error}")
            # On a slow disk, requests get most of the time.
            await asyncio.sleep(max(REFRESH_SECONDS, 4 * (time.monotonic() - began)))

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        index = await loop.run_in_executor(self._summaries, self._summary_index)
        if index.path is None:  # no other process can write to an index in memory
            await loop.run_in_executor(self._summaries, index.refresh)
        else:
            await self._worker.ask({}, self._hear)
        await loop.run_in_executor(self._summaries, self._summarise, index)

    def _summary_index(self) -> Index:
        """Return a second connection to the index, so that requests need not wait for summaries.

        An index in memory has only one connection.
        """
        assert self._index is not None
        if self._second is None and self._index.path is not None:
            self._second = open_index(self.home)
        return self._second or self._index

    def _hear(self, progress: str) -> None:
        self.reading = progress

    def _summarise(self, index: Index) -> None:
        self.reading = ""
        self._summary = summarise_index(index)
        self.is_running = bool(self._summary.running)
        self.refreshed += 1
        counts = [index.runs(f"state={state}", limit=1).total for state in STATES]
        groups = [(row.group, row.runs, row.created) for row in self._summary.latest]
        self.digest = digest((counts, groups))

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._waiting >= MOST_WAITING:
            raise Busy("too many requests at once: try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        finally:
            self._waiting -= 1
