"""Notifies open pages of changes; a page then fetches itself again.

The event stream sends a version: a digest of the states of the page's runs and of the sizes of
their files. The browser sends the last version when it reconnects.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.index.rows import Outline
from runshelf.recorder.output_reader import read_part
from runshelf.store.metrics import stamp
from runshelf.web.reader import Reader, digest, wait
from runshelf.web.serving.worker_process import Busy
from runshelf.web.subjects import outlines_of

POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
HOME_SECONDS = 5.0  # between two versions of the home page while a run is running
_PIXELS = 340  # width of a chart: a new version when a curve has grown by about one pixel
_LEAST_SECONDS = 3.0
HEARTBEAT = "event: beat\ndata:\n\n"


@final
class Watched(NamedTuple):
    """The contents of a page.

    Attributes:
        chosen: kind and key of its runs and groups; empty for the home page.
        output: whether the page shows the output of its single run instead of curves.
    """

    chosen: tuple[tuple[str, str], ...] = ()
    output: bool = False


@final
class LiveUpdates:
    """The stream of versions of one page."""

    def __init__(self, reader: Reader, watched: Watched) -> None:
        self._reader = reader
        self._watched = watched
        self._rows: Sequence[Outline] = ()
        self._refreshed = -1
        self._states = ""
        self._files = ""
        self._next_check = 0.0

    async def version(self) -> str:
        """Return the current version of the page."""
        if not self._watched.chosen:
            ticks = int(time.time() / HOME_SECONDS) if self._reader.is_running else 0
            return f"{self._reader.digest}-{ticks}"
        if self._refreshed != self._reader.refreshed:
            self._refreshed = self._reader.refreshed
            chosen = self._watched.chosen
            self._rows = await self._reader.query(lambda index: outlines_of(index, chosen))
        states = digest([(row.folder.name, row.state, row.note) for row in self._rows])
        running = [row for row in self._rows if row.state == "running"]
        if states != self._states or time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + (1.0 if self._watched.output else _pause(running))
            self._files = await self._reader.read(lambda: self._file_digest(self._rows))
        self._states = states
        return f"{states}-{self._files}"

    async def events(self, known: str, ending: asyncio.Event) -> AsyncIterator[str]:
        """Yield an event for each new version until the server ends.

        Args:
            known: the version that the page shows.
            ending: set when the server is about to stop.
        """
        yield "retry: 2000\n\n"
        last = time.monotonic()
        while not ending.is_set():
            version = await self._version_or(known)
            if version != known or time.monotonic() - last > HEARTBEAT_SECONDS:
                last = time.monotonic()
                yield HEARTBEAT if version == known else f"id: {version}\nevent: change\ndata:\n\n"
                known = version
            await wait(ending, POLL_SECONDS)

    async def _version_or(self, known: str) -> str:
        try:
            return await self.version()
        except (UserFacingError, Busy):
            return known

    def _file_digest(self, rows: Sequence[Outline]) -> str:
        if self._watched.output:
            return digest([read_part(row.folder, 0, 0)[1] for row in rows])
        return digest([stamp(row.folder) for row in rows])


def _pause(running: Sequence[Outline]) -> float:
    """Return the seconds in which a curve grows by about one pixel."""
    if not running:
        return HEARTBEAT_SECONDS
    age = time.time() - min(row.created for row in running)
    return max(_LEAST_SECONDS, age / _PIXELS)
