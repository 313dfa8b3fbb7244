"""The clerk: the one thread that works with a run's label file on behalf of all its pages.

An SQLite connection belongs to the thread that opened it, and one desk may not do two things at
once; so all of it is asked of one thread, in the order of asking.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.preferences.people.desk import Desk
from backflip.preferences.people.status import read_status

T = TypeVar("T")


@final
class Clerk:
    """Works at the desk of the run in `folder`. Use `open`."""

    def __init__(self, folder: Path, thread: ThreadPoolExecutor, desk: Desk) -> None:
        self.folder = folder
        self._thread = thread
        self._desk = desk
        self._written = 0

    @classmethod
    async def open(cls, folder: Path, overlap: float) -> "Clerk":
        """Open the label file of a run; make it if there is none.

        Raises:
            BackflipError: it cannot be opened, or is damaged.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="labels")
        loop = asyncio.get_running_loop()
        path = folder / LABELS
        desk = await loop.run_in_executor(
            thread, lambda: Desk(LabelStore.open(path), overlap=overlap)
        )
        return cls(folder, thread, desk)

    async def close(self) -> None:
        """Close the label file once everything asked is done."""
        await self.ask(lambda desk: desk.store.close())
        self._thread.shutdown()

    async def ask(self, work: Callable[[Desk], T]) -> T:
        """Return what `work` makes of the desk."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._desk)

    async def write(self, work: Callable[[Desk], T]) -> T:
        """Return what `work` makes of the desk; other pages are to be told that it changed."""
        done = await self.ask(work)
        self._written += 1
        return done

    async def moment(self) -> object:
        """Return something that differs once there is news for a page."""
        return await self.ask(self._moment)

    def _moment(self, desk: Desk) -> object:
        status = read_status(self.folder)
        # Where there is no status it is as of now, and always another.
        told = status if status.pid else status.doing
        return self._written, desk.store.file.changes(), told
