"""The service: the one thread that works with a run's label file on behalf of all its pages.

An SQLite connection belongs to the thread that opened it, and a label queue may not do two things
at once; so one thread does all of it, in the order in which the pages ask.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.status import read_status
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore

T = TypeVar("T")


@final
class LabelService:
    """Works with the label queue of the run in `folder`. Use `open`."""

    def __init__(self, folder: Path, thread: ThreadPoolExecutor, queue: LabelQueue) -> None:
        self.folder = folder
        self._thread = thread
        self._queue = queue
        self._written = 0

    @classmethod
    async def open(cls, folder: Path, overlap: float) -> "LabelService":
        """Open the label file of a run; make it if there is none.

        Raises:
            UserFacingError: it cannot be opened, or is damaged.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="labels")
        loop = asyncio.get_running_loop()
        path = folder / LABELS
        queue = await loop.run_in_executor(
            thread, lambda: LabelQueue(LabelStore.open(path), overlap=overlap)
        )
        return cls(folder, thread, queue)

    async def close(self) -> None:
        """Close the label file once everything asked is done."""
        await self.ask(lambda queue: queue.store.close())
        self._thread.shutdown()

    async def ask(self, work: Callable[[LabelQueue], T]) -> T:
        """Return what `work` makes of the label queue."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._queue)

    async def write(self, work: Callable[[LabelQueue], T]) -> T:
        """Return what `work` makes of the label queue; the other pages hear that it changed."""
        done = await self.ask(work)
        self._written += 1
        return done

    async def moment(self) -> object:
        """Return something that differs once there is news for a page."""
        return await self.ask(self._moment)

    def _moment(self, queue: LabelQueue) -> object:
        status = read_status(self.folder)
        # Where there is no status it is as of now, and always another.
        told = status if status.pid else status.doing
        return self._written, queue.store.file.changes(), told
