"""One home, read on behalf of all pages: the index by one thread, files by two, news by another.

The event loop itself never waits for a disk. The index is brought up to date in the background, so
that a request finds it as it was a moment ago rather than wait for it.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

from backflip.archive.index.rows import RunRow
from backflip.archive.index.run_index import Index, open_index
from backflip.core.errors import BackflipError
from backflip.web.archive_pages.changes import Changes
from backflip.web.archive_pages.home import Asked, ask_now
from backflip.web.archive_pages.shelf import Shelf

T = TypeVar("T")

REFRESH_SECONDS = 2.0
MOST_RUNNING = 200
# More than so many requests waiting for a thread are refused rather than kept.
MOST_WAITING = 64
_ANSWER = 2**17  # bytes that a page of the table takes, about


class Busy(Exception):
    """Too many requests wait already."""


@final
class Reader:
    """Reads the home. Use `open`."""

    def __init__(self, home: Path) -> None:
        """Make the threads; nothing is read yet."""
        self.home = home
        self.shelf = Shelf()
        self.changes = Changes()
        self.reading = ""
        self._index: Index | None = None
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._files = ThreadPoolExecutor(2, thread_name_prefix="files")
        self._news = ThreadPoolExecutor(1, thread_name_prefix="news")
        self._waiting = 0
        self._now: Asked | None = None
        self._running: set[str] = set()

    @classmethod
    async def open(cls, home: Path) -> "Reader":
        """Open the index of a home.

        Raises:
            BackflipError: it cannot be opened.
        """
        reader = cls(home)
        loop = asyncio.get_running_loop()
        reader._index = await loop.run_in_executor(reader._queries, open_index, home)
        return reader

    async def close(self) -> None:
        """End the threads once what they do is done."""
        for threads in (self._news, self._files):
            threads.shutdown(wait=False, cancel_futures=True)
        await self.ask(lambda index: index.close())
        self._queries.shutdown()

    async def ask(self, work: Callable[[Index], T]) -> T:
        """Return what `work` makes of the index.

        Raises:
            Busy: too many wait for it already.
        """
        index = self._index
        assert index is not None
        return await self._in(self._queries, lambda: work(index))

    async def ask_once(self, question: object, work: Callable[[Index], T]) -> T:
        """Return what `work` makes of the index: as before, if that has not changed since.

        Args:
            question: what tells this piece of work from others.
            work: asks the index; what it returns is not changed by anybody.

        Raises:
            Busy: too many wait for it already.
        """

        def answer(index: Index) -> T:
            version = index.version()
            known = None if version is None else self.shelf.get((question, version))
            if known is not None:
                return known
            found = work(index)
            return found if version is None else self.shelf.put((question, version), found, _ANSWER)

        return await self.ask(answer)

    async def asked_now(self) -> Asked:
        """Return what the index says of now: the same to all pages until it is refreshed.

        Before it has been once, what it said a moment ago may be of no runs yet, and is not kept.
        """
        return self._now or await self.ask(ask_now)

    async def read(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, which reads files.

        Raises:
            Busy: too many wait already.
        """
        return await self._in(self._files, work)

    async def keep_fresh(self, ending: asyncio.Event) -> None:
        """Bring the index up to date again and again, until the end."""
        loop = asyncio.get_running_loop()
        index: Index | None = None
        while not ending.is_set():
            began = time.monotonic()
            try:
                opened = index or await loop.run_in_executor(self._news, self._second)
                index = opened
                await loop.run_in_executor(self._news, self._refresh, opened)
            except BackflipError as error:
                sys.stderr.write(f"backflip: {' '.join(str(error).split())}\n")
            # Of a home on a slow disk the greater part of the time must be left to requests.
            pause = max(REFRESH_SECONDS, 4 * (time.monotonic() - began))
            try:
                async with asyncio.timeout(pause):
                    await ending.wait()
            except TimeoutError:
                pass
        if index is not None and index is not self._index:
            await loop.run_in_executor(self._news, index.close)

    def _second(self) -> Index:
        """Return an index that can be refreshed while the other is asked.

        One that could be kept nowhere is in memory, and there can be no other of it.
        """
        assert self._index is not None
        return self._index if self._index.path is None else open_index(self.home)

    def _refresh(self, index: Index) -> None:
        index.refresh(self._tell)
        self.reading = ""
        running = index.runs("state=running", limit=MOST_RUNNING)
        total = index.runs(limit=1).total
        rows = {row.ulid: row for row in running.rows}
        ended = [row for ulid in self._running - rows.keys() if (row := index.run(ulid))]
        self._running = set(rows)
        told = [*rows.values(), *ended]
        self.changes.note([(row.ulid, _fields(row)) for row in told], total)
        self._now = ask_now(index)

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


def _fields(row: RunRow) -> dict[str, object]:
    return {
        "state": row.state,
        "note": row.note,
        "group": row.group,
        "seconds": None if row.state == "running" else row.seconds,
    }
