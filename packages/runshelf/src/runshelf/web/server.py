"""The server of the archive's pages: one process, one event loop, a few threads that read."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from runshelf.errors import UsageError, UserFacingError
from runshelf.index.location import cache_folder
from runshelf.web.address import LOOPBACK, Place, take_place
from runshelf.web.app import Pages
from runshelf.web.guard import Guard
from runshelf.web.reader import Reader
from runshelf.web.serving import Server, settings


def serve_home(
    home: Path,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    announce: Callable[[Place], None],
) -> None:
    """Serve the pages of all runs in a home until told to end. Nothing is written to the home.

    Args:
        home: the folder whose `runs/` holds runs; there may be none yet.
        host: the address to listen at; other addresses than loopback need the token.
        port: the port; None for the last one, else the first free one from 8765.
        announce: called once the server answers.

    Raises:
        UsageError: there is no such folder, or the port is taken.
        UserFacingError: the index cannot be opened.
    """
    if not home.is_dir():
        raise UsageError(f"there is no folder `{home}`: name another with --home")
    asyncio.run(_serve(home, host, port, announce))


async def _serve(
    home: Path, host: str, port: int | None, announce: Callable[[Place], None]
) -> None:
    reader = await Reader.open(home)
    try:
        listener, place = take_place(_own_folder(home), host, port)
        pages = Pages(reader)
        fresh = asyncio.ensure_future(reader.keep_fresh(pages.ending))
        server = Server(
            settings(Guard(pages.app(), place, has_forms=True)),
            announce=lambda: announce(place),
            ending=pages.ending,
        )
        try:
            await server.serve(sockets=[listener])
        finally:
            pages.ending.set()
            await fresh
    finally:
        await reader.close()


def _own_folder(home: Path) -> Path:
    """Return the user's folder for the server's port and secret.

    The home is often a project's folder, which is copied and given away.
    """
    folder = cache_folder(home)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise UserFacingError(f"cannot write to `{folder}` ({error.strerror})") from error
    return folder
