"""Reads one home for all pages: the index in one thread, files in two, the refresh in another.

The event loop never waits for a disk. The index is refreshed in the background, so a request reads
the index as it was a moment ago and does not wait.
"""

import asyncio
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
from runshelf.web.cache import Cache
from runshelf.web.home_page import IndexSummary, summarise_index
from runshelf.web.runs_table import STATES

T = TypeVar("T")

REFRESH_SECONDS = 2.0
# Further requests that would wait for a thread are refused.
MOST_WAITING = 64
_ANSWER = 2**17  # bytes that a page of the table takes, about


def digest(value: object) -> str:
    """Return a short digest of a value's `repr`."""
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:12]


class Busy(Exception):
    """Too many requests are waiting already."""


@final
class Reader:
    """Reads the home; made by `open`."""

    def __init__(self, home: Path) -> None:
        """Make the threads; nothing is read yet."""
        self.home = home
        self.cache = Cache()
        self.reading = ""
        # These tell open pages that something has changed.
        self.refreshed = 0
        self.digest = ""
        self.is_running = False
        self._index: Index | None = None
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._files = ThreadPoolExecutor(2, thread_name_prefix="files")
        self._news = ThreadPoolExecutor(1, thread_name_prefix="news")
        self._waiting = 0
        self._summary: IndexSummary | None = None

    @classmethod
    async def open(cls, home: Path) -> "Reader":
        """Open the index of a home.

        Raises:
            UserFacingError: it cannot be opened.
        """
        reader = cls(home)
        loop = asyncio.get_running_loop()
        reader._index = await loop.run_in_executor(reader._queries, open_index, home)
        return reader

    async def close(self) -> None:
        """End the threads once what they do is done."""
        for threads in (self._news, self._files):
            threads.shutdown(wait=False, cancel_futures=True)
        await self.query(lambda index: index.close())
        self._queries.shutdown()

    async def query(self, work: Callable[[Index], T]) -> T:
        """Return what `work` returns for the index.

        Raises:
            Busy: too many wait for it already.
        """
        index = self._index
        assert index is not None
        return await self._in(self._queries, lambda: work(index))

    async def query_cached(self, question: object, work: Callable[[Index], T]) -> T:
        """Return what `work` returns for the index, from the cache if the index has not changed.

        Args:
            question: the key of this piece of work.
            work: reads the index; its result is never modified.

        Raises:
            Busy: too many wait for it already.
        """

        def answer(index: Index) -> T:
            version = index.version()
            known = None if version is None else self.cache.get((question, version))
            if known is not None:
                return known
            found = work(index)
            return found if version is None else self.cache.put((question, version), found, _ANSWER)

        return await self.query(answer)

    async def keys(self) -> Keys:
        """Return the keys that runs can be filtered by and that tables can show."""
        return await self.query_cached("keys", lambda index: index.keys())

    async def summary(self) -> IndexSummary:
        """Return what the index knows of the top of the home page, as of the last refresh.

        Before the first refresh the index may still be empty, so nothing is kept.
        """
        return self._summary or await self.query(summarise_index)

    async def read(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, which reads files.

        Raises:
            Busy: too many wait already.
        """
        return await self._in(self._files, work)

    async def keep_fresh(self, ending: asyncio.Event) -> None:
        """Refresh the index again and again until the server ends."""
        loop = asyncio.get_running_loop()
        index: Index | None = None
        while not ending.is_set():
            began = time.monotonic()
            try:
                opened = index or await loop.run_in_executor(self._news, self._second)
                index = opened
                await loop.run_in_executor(self._news, self._refresh, opened)
            except UserFacingError as error:
                sys.stderr.write(f"runshelf: {' '.join(str(error).split())}\n")
            # On a slow disk most of the time is left to requests.
            pause = max(REFRESH_SECONDS, 4 * (time.monotonic() - began))
            try:
                async with asyncio.timeout(pause):
                    await ending.wait()
            except TimeoutError:
                pass
        if index is not None and index is not self._index:
            await loop.run_in_executor(self._news, index.close)

    def _second(self) -> Index:
        """Return an index that can be refreshed while the other is read.

        An index in memory, where no file can be written, is the only one.
        """
        assert self._index is not None
        return self._index if self._index.path is None else open_index(self.home)

    def _refresh(self, index: Index) -> None:
        index.refresh(self._tell)
        self.reading = ""
        self._summary = summarise_index(index)
        self.is_running = bool(self._summary.running)
        self.refreshed += 1
        counts = [index.runs(f"state={state}", limit=1).total for state in STATES]
        groups = [(row.group, row.runs, row.created) for row in self._summary.latest]
        self.digest = digest((counts, groups))

    def _tell(self, progress: object) -> None:
        done, total = getattr(progress, "done", 0), getattr(progress, "total", 0)
        self.reading = f"reading run folders: {done} of {total}" if total > 500 else ""

    async def _in(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._waiting >= MOST_WAITING:
            raise Busy("too many requests at once: try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        finally:
            self._waiting -= 1
