"""The server of a game: one process, one event loop, one thread for the environment."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backflip.inspect.play_page import Game, Playing
from runshelf.web.address import LOOPBACK, Endpoint, bind_endpoint
from runshelf.web.guard import Guard
from runshelf.web.uvicorn_server import Server, settings


def serve_game(
    game: Game, folder: Path, *, port: int | None, announce: Callable[[Endpoint], None]
) -> None:
    """Serve the page of a game, on this machine alone, until told to end.

    Args:
        game: what is played.
        folder: where the server's port and secret are kept, the run's.
        port: the port; None for the first one free from 8765.
        announce: called once the page is answered.

    Raises:
        UsageError: the port is taken.
    """
    asyncio.run(_serve(game, folder, port, announce))


async def _serve(
    game: Game, folder: Path, port: int | None, announce: Callable[[Endpoint], None]
) -> None:
    listener, endpoint = bind_endpoint(folder, LOOPBACK, port)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="game") as thread:
        server = Server(
            settings(Guard(Playing(game, thread, endpoint).app(), endpoint)),
            announce=lambda: announce(endpoint),
            ending=asyncio.Event(),
            handle_signals=True,
        )
        await server.serve(sockets=[listener])
