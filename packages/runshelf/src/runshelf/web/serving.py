"""How every server of ours works: Uvicorn with its settings, and when it begins and ends."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import final

import uvicorn
from starlette.types import ASGIApp


def settings(app: ASGIApp) -> uvicorn.Config:
    """Return the settings of a server."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        # Errors of clients are not logged; the guard reports errors of the server.
        log_level="critical",
        access_log=False,
        server_header=False,
        # There is no proxy: headers must not set the client's address.
        proxy_headers=False,
        # Pages keep a connection between two answers.
        timeout_keep_alive=120,
        timeout_graceful_shutdown=1,
        # Each connection costs memory.
        limit_concurrency=256,
    )


@final
class Server(uvicorn.Server):
    """Uvicorn's server; it reports when it begins and when it is about to end.

    Args:
        config: its settings.
        announce: called once it answers.
        ending: set when it is about to end.
        heeds_signals: whether Ctrl-C ends it; otherwise its parent process does.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        announce: Callable[[], None],
        ending: asyncio.Event,
        heeds_signals: bool = True,
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._ending = ending
        self._heeds_signals = heeds_signals

    async def main_loop(self) -> None:
        """Serve until told to end."""
        self._announce()
        await super().main_loop()
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle Ctrl-C, unless the parent process ends this one."""
        if self._heeds_signals:
            with super().capture_signals():
                yield
        else:
            yield
