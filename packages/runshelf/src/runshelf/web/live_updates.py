"""Tells an open page that its content has changed; the page then fetches itself again.

The stream sends a version: a digest of the states of the page's runs and of the sizes of the files
that running runs write. The browser returns the last version when it connects again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.index.rows import RunRow
from runshelf.recorder.output_reader import read_part
from runshelf.web import run_files
from runshelf.web.reader import Busy, Reader, digest
from runshelf.web.subjects import runs_of

POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
HOME_SECONDS = 5.0  # between two versions of the home page while a run is running
_PIXELS = 340  # of a chart: a new version once a curve has grown by about one
_LEAST_SECONDS = 3.0
HEARTBEAT = "event: beat\ndata:\n\n"


@final
class Watched(NamedTuple):
    """What a page shows.

    Attributes:
        chosen: kind and key of its runs and groups; none for the home page.
        output: whether it shows the output of its only run rather than curves.
    """

    chosen: tuple[tuple[str, str], ...] = ()
    output: bool = False


@final
class LiveUpdates:
    """The versions of one page."""

    def __init__(self, reader: Reader, watched: Watched) -> None:
        self._reader = reader
        self._watched = watched
        self._rows: Sequence[RunRow] = ()
        self._seen = -1
        self._states = ""
        self._files = ""
        self._next = 0.0

    async def version(self) -> str:
        """Return the version of the page as of now."""
        if not self._watched.chosen:
            ticks = int(time.time() / HOME_SECONDS) if self._reader.is_running else 0
            return f"{self._reader.digest}-{ticks}"
        if self._seen != self._reader.refreshed:
            self._seen = self._reader.refreshed
            found = await self._reader.query(lambda index: runs_of(index, self._watched.chosen))
            self._rows = [row for runs in found for row in runs.rows]
        states = digest([(row.ulid, row.state, row.note) for row in self._rows])
        running = [row for row in self._rows if row.state == "running"]
        if states != self._states or time.monotonic() >= self._next:
            self._next = time.monotonic() + (1.0 if self._watched.output else _pause(running))
            self._files = await self._reader.read(lambda: self._written(self._rows))
        self._states = states
        return f"{states}-{self._files}"

    async def events(self, known: str, ending: asyncio.Event) -> AsyncIterator[str]:
        """Yield an event for each new version until the server ends.

        Args:
            known: the version that the page shows.
            ending: set once the server is about to end.
        """
        yield "retry: 2000\n\n"
        last = time.monotonic()
        while not ending.is_set():
            version = await self._version_or(known)
            if version != known or time.monotonic() - last > HEARTBEAT_SECONDS:
                last = time.monotonic()
                yield HEARTBEAT if version == known else f"id: {version}\nevent: change\ndata:\n\n"
                known = version
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await ending.wait()
            except TimeoutError:
                pass

    async def _version_or(self, known: str) -> str:
        try:
            return await self.version()
        except (UserFacingError, Busy):
            return known

    def _written(self, rows: Sequence[RunRow]) -> str:
        if self._watched.output:
            return digest([read_part(row.folder, 0, 0)[1] for row in rows])
        return digest([run_files.stamp(row.folder) for row in rows])


def _pause(running: Sequence[RunRow]) -> float:
    """Return the seconds in which a curve grows by about a pixel."""
    if not running:
        return HEARTBEAT_SECONDS
    age = time.time() - min(row.created for row in running)
    return max(_LEAST_SECONDS, age / _PIXELS)
