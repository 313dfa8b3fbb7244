"""The server of the pages: one process with an event loop and a few threads that read.

Two more processes read what may take long: run folders that changed, and large runs.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from runshelf.errors import UsageError
from runshelf.store.paths import is_folder
from runshelf.web.app import Pages
from runshelf.web.pages.run_tabs import RunTab, RunTabs
from runshelf.web.reader import Reader
from runshelf.web.serving.address import LOOPBACK, Endpoint, bind_endpoint
from runshelf.web.serving.guard import Guard
from runshelf.web.serving.large_runs import LargeRuns
from runshelf.web.serving.uvicorn_server import Server, settings


def serve_home(
    home: Path,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    announce: Callable[[Endpoint], None],
    tabs: Sequence[RunTab] = (),
) -> None:
    """Serve the pages of all runs in a home until stopped; only its index and notes are written.

    Args:
        home: the folder whose `runs/` holds runs; it may have none yet.
        host: the address to listen at; addresses other than loopback require the token.
        port: the port; None for the last one, or else the first free one from 8765.
        announce: called when the server accepts requests.
        tabs: tabs that the program adds to the pages of a run.

    Raises:
        UsageError: the folder does not exist, or the port is taken.
        UserFacingError: the index cannot be opened.
    """
    if not is_folder(home):
        raise UsageError(f"there is no folder `{home}`: name another with --home")
    sys.setswitchinterval(_SWITCH_SECONDS)
    asyncio.run(_serve(home, host, port, announce, tabs))


# A thread that parses a large file hands over so often. SQLite waits for this at each row that it
# returns: with Python's 5 ms, one large file would make every page take seconds.
_SWITCH_SECONDS = 0.0002


async def _serve(
    home: Path,
    host: str,
    port: int | None,
    announce: Callable[[Endpoint], None],
    tabs: Sequence[RunTab],
) -> None:
    reader, large_runs = await Reader.open(home), LargeRuns(home, tabs)
    run_tabs = RunTabs(home, tabs)
    try:
        listener, endpoint = bind_endpoint(home, host, port)
        pages = Pages(reader, large_runs, run_tabs, endpoint.token("same-site"))
        refresh = asyncio.ensure_future(reader.keep_fresh())
        server = Server(
            settings(Guard(pages.app(), endpoint, has_forms=True)),
            announce=lambda: announce(endpoint),
            ending=pages.ending,
        )
        try:
            await server.serve(sockets=[listener])
        finally:
            pages.ending.set()
            refresh.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refresh
    finally:
        await large_runs.close()
        await run_tabs.close()
        await reader.close()
