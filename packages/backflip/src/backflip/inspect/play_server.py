"""The web server of a game, with a single thread for the environment."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backflip.inspect.game import Game
from backflip.inspect.play_page import PlayPage
from runshelf.web.serving.address import LOOPBACK, Endpoint, bind_endpoint
from runshelf.web.serving.guard import Guard
from runshelf.web.serving.uvicorn_server import Server, settings


def serve_game(
    game: Game, folder: Path, *, port: int | None, announce: Callable[[Endpoint], None]
) -> None:
    """Serve the page of a game on the loopback address until the process is told to stop.

    Args:
        game: the game.
        folder: the run's folder.
        port: the port; None for the first free one from 8765.
        announce: called with the address once the page is served.

    Raises:
        UsageError: the port is in use.
    """
    asyncio.run(_serve(game, folder, port, announce))


async def _serve(
    game: Game, folder: Path, port: int | None, announce: Callable[[Endpoint], None]
) -> None:
    listener, endpoint = bind_endpoint(folder, LOOPBACK, port)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="game") as thread:
        server = Server(
            settings(Guard(PlayPage(game, thread, endpoint).app(), endpoint)),
            announce=lambda: announce(endpoint),
            ending=asyncio.Event(),
            handle_signals=True,
        )
        await server.serve(sockets=[listener])
