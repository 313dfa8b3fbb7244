"""The label service: one thread that uses a run's label queue for all open pages.

An SQLite connection belongs to the thread that opened it, and a label queue is not thread-safe. So
one thread does all the work, in the order of the requests.
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
    """Runs functions on the label queue of the run in `folder`. Create it with `open`."""

    def __init__(self, folder: Path, thread: ThreadPoolExecutor, queue: LabelQueue) -> None:
        self.folder = folder
        self._thread = thread
        self._queue = queue
        self._written = 0

    @classmethod
    async def open(cls, folder: Path, overlap: float) -> "LabelService":
        """Open the label file of a run.

        Raises:
            UserFacingError: the file is missing, cannot be opened, or is damaged.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="labels")
        loop = asyncio.get_running_loop()
        path = folder / LABELS
        queue = await loop.run_in_executor(
            thread, lambda: LabelQueue(LabelStore.open_existing(path), overlap=overlap)
        )
        return cls(folder, thread, queue)

    async def close(self) -> None:
        """Close the label file after all pending work."""
        await self.call(lambda queue: queue.store.close())
        self._thread.shutdown()

    async def call(self, work: Callable[[LabelQueue], T]) -> T:
        """Return `work(queue)`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._queue)

    async def write(self, work: Callable[[LabelQueue], T]) -> T:
        """Return `work(queue)`, and let all pages know that the state changed."""
        done = await self.call(work)
        self._written += 1
        return done

    async def version(self) -> object:
        """Return a value that changes whenever the state of labelling or training changes."""
        return await self.call(self._version_now)

    def _version_now(self, queue: LabelQueue) -> object:
        status = read_status(self.folder)
        # Without a status file, `status.since` is the current time and would always differ.
        present = queue.leases.present()  # when a person leaves, pairs become free
        described = status if status.pid else status.doing
        return self._written, queue.store.file.changes(), described, present
