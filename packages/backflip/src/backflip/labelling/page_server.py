"""The server of the labelling page: one event loop and one thread for the labels."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from backflip.labelling.page_app import LabellingApp
from backflip.labelling.service import LabelService
from runshelf.errors import UsageError
from runshelf.web.serving.address import LOOPBACK, Endpoint, bind_endpoint
from runshelf.web.serving.guard import Guard
from runshelf.web.serving.uvicorn_server import Server, settings

_LAST_STATE_SECONDS = 2.0  # time for open pages to receive the last state before the server ends
_LAST_FILM_SECONDS = 1.0  # time to load the film that the last state names


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
    """Serve the labelling page of a run until the process is asked to end.

    Args:
        folder: the run's folder.
        host: the address to listen on; any other than loopback requires a token in the URL.
        port: None for the run's last port, else the first free one from 8765.
        overlap: share of pairs that a second person also sees.
        who: default name of a labeller.
        parent: ignore signals and end when standard input ends; the trainer holds its other end.
        announce: called when the server listens.

    Raises:
        UsageError: the folder does not exist, or the port is taken.
        UserFacingError: the labels cannot be opened.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no run folder `{folder}`")
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
        labelling = LabellingApp(service, endpoint, who)
        server = Server(
            settings(Guard(labelling.app(), endpoint)),
            announce=lambda: announce(endpoint),
            ending=labelling.ending,
            handle_signals=not parent,
        )
        if parent:
            _watch_input(lambda: asyncio.ensure_future(_end(labelling, server)))
        await server.serve(sockets=[listener])
    finally:
        await service.close()


async def _end(labelling: LabellingApp, server: uvicorn.Server) -> None:
    """Send the last state to open pages, then end the server."""
    pages = labelling.streams
    labelling.ending.set()
    until = asyncio.get_running_loop().time() + _LAST_STATE_SECONDS
    while labelling.streams and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.02)
    if pages:
        await asyncio.sleep(_LAST_FILM_SECONDS)
    server.should_exit = True


def _watch_input(ended: Callable[[], object]) -> None:
    """Call `ended` in this event loop when standard input ends."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        # `sys.stdin` has a lock that no thread may hold when the process ends.
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop already ended
            loop.call_soon_threadsafe(ended)

    threading.Thread(target=watch, name="parent", daemon=True).start()
