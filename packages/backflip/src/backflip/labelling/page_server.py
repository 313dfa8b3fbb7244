"""The server of the labelling page: one process, one event loop, one thread for the labels."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from backflip.labelling.page_app import Labelling
from backflip.labelling.service import LabelService
from runshelf.errors import UsageError
from runshelf.web.address import LOOPBACK, Endpoint, bind_endpoint
from runshelf.web.guard import Guard
from runshelf.web.uvicorn_server import Server, settings

# How long pages may take to hear the last state before the server ends.
_FAREWELL_SECONDS = 2.0


def serve(
    folder: Path,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    overlap: float = 0.0,
    who: str = "me",
    parent: bool = False,
    announce: Callable[[Endpoint], None],
) -> None:
    """Serve the pages of the run in `folder` until told to end.

    Args:
        folder: the run's.
        host: the address to listen at; others than loopback need the token in the address.
        port: the port; None for the one it had before, else the first one free from 8765.
        overlap: share of pairs that are shown to a second person, too.
        who: what somebody is called who has not said a name.
        parent: end when standard input ends, and not before: its other end is the trainer's.
        announce: called once pages are answered.

    Raises:
        UsageError: there is no such folder, or the port is taken.
        UserFacingError: the labels cannot be opened.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no run's folder `{folder}`")
    if not 0 <= overlap <= 1:
        raise UsageError(f"`overlap` is {overlap}: expected a share from 0 to 1")
    asyncio.run(_serve(folder, host, port, overlap, who, parent, announce))


async def _serve(
    folder: Path,
    host: str,
    port: int | None,
    overlap: float,
    who: str,
    parent: bool,
    announce: Callable[[Endpoint], None],
) -> None:
    service = await LabelService.open(folder, overlap)
    try:
        listener, endpoint = bind_endpoint(folder, host, port, save_port=parent)
        labelling = Labelling(service, endpoint, who)
        server = Server(
            settings(Guard(labelling.app(), endpoint)),
            announce=lambda: announce(endpoint),
            ending=labelling.ending,
            handle_signals=not parent,
        )
        if parent:
            _watch_input(lambda: asyncio.ensure_future(_say_farewell(labelling, server)))
        await server.serve(sockets=[listener])
    finally:
        await service.close()


async def _say_farewell(labelling: Labelling, server: uvicorn.Server) -> None:
    """Let pages hear the last state, then end the server."""
    labelling.ending.set()
    until = asyncio.get_running_loop().time() + _FAREWELL_SECONDS
    while labelling.streams and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.02)
    server.should_exit = True


def _watch_input(ended: Callable[[], object]) -> None:
    """Call `ended` in this event loop once standard input has ended."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        # Not by way of `sys.stdin`, whose lock a thread must not hold when the process ends.
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended first
            loop.call_soon_threadsafe(ended)

    threading.Thread(target=watch, name="parent", daemon=True).start()
