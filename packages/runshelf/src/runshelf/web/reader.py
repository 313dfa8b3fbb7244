"""Reads a home for all pages: the index in one thread, files in two, index refreshes in another.

The event loop never waits for a disk. The index is refreshed in the background, so a request may
read an index that is a few seconds old, but does not wait.
"""

import asyncio
import contextlib
import hashlib
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

from runshelf.errors import UserFacingError
from runshelf.index.rows import Keys
from runshelf.index.run_index import Index, open_index
from runshelf.terminal_text import put
from runshelf.web.cache import Cache
from runshelf.web.home_page import IndexSummary, summarise_index
from runshelf.web.runs_table import STATES

T = TypeVar("T")

REFRESH_SECONDS = 2.0
# Requests are refused while this many wait for a thread.
MOST_WAITING = 64
_TABLE_BYTES = 2**17  # approximate size of a page of the table


def digest(value: object) -> str:
    """Return a short digest of a value's `repr`."""
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:12]


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so many seconds."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


class Busy(Exception):
    """Too many requests are waiting."""


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
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._files = ThreadPoolExecutor(2, thread_name_prefix="files")
        self._refreshes = ThreadPoolExecutor(1, thread_name_prefix="refresh")
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
        """Stop the threads after their current work."""
        for threads in (self._refreshes, self._files):
            threads.shutdown(wait=False, cancel_futures=True)
        await self.query(lambda index: index.close())
        self._queries.shutdown()

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

    async def keep_fresh(self, ending: asyncio.Event) -> None:
        """Refresh the index periodically until the server stops."""
        loop = asyncio.get_running_loop()
        index: Index | None = None
        while not ending.is_set():
            began = time.monotonic()
            try:
                opened = index or await loop.run_in_executor(self._refreshes, self._refresh_index)
                index = opened
                await loop.run_in_executor(self._refreshes, self._refresh, opened)
            except UserFacingError as error:
                put(f"runshelf: {' '.join(str(error).split())}", file=sys.stderr)
            # On a slow disk, requests get most of the time.
            await wait(ending, max(REFRESH_SECONDS, 4 * (time.monotonic() - began)))
        if index is not None and index is not self._index:
            await loop.run_in_executor(self._refreshes, index.close)

    def _refresh_index(self) -> Index:
        """Return a second connection to the index, refreshed while the first one is read.

        Where no file can be written, the index is in memory and has only one connection.
        """
        assert self._index is not None
        return self._index if self._index.path is None else open_index(self.home)

    def _refresh(self, index: Index) -> None:
        index.refresh(self._report_progress)
        self.reading = ""
        self._summary = summarise_index(index)
        self.is_running = bool(self._summary.running)
        self.refreshed += 1
        counts = [index.runs(f"state={state}", limit=1).total for state in STATES]
        groups = [(row.group, row.runs, row.created) for row in self._summary.latest]
        self.digest = digest((counts, groups))

    def _report_progress(self, progress: object) -> None:
        done, total = getattr(progress, "done", 0), getattr(progress, "total", 0)
        self.reading = f"reading run folders: {done} of {total}" if total > 500 else ""

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._waiting >= MOST_WAITING:
            raise Busy("too many requests at once: try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        finally:
            self._waiting -= 1
