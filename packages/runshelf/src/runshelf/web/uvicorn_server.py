"""Uvicorn with our settings, a callback when it has started, and an event when it stops."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import final

import uvicorn
from starlette.types import ASGIApp


def settings(app: ASGIApp) -> uvicorn.Config:
    """Return Uvicorn's configuration for an application."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        # Client errors are not logged; the guard reports server errors.
        log_level="critical",
        access_log=False,
        server_header=False,
        # There is no proxy: headers must not set the client's address.
        proxy_headers=False,
        # Pages reuse their connection.
        timeout_keep_alive=120,
        timeout_graceful_shutdown=1,
        # Each connection costs memory.
        limit_concurrency=256,
    )


@final
class Server(uvicorn.Server):
    """Uvicorn's server with start and stop notifications.

    Args:
        config: its configuration.
        announce: called when the server accepts requests.
        ending: set when the server is about to stop.
        handle_signals: whether Ctrl-C stops it; otherwise its parent process does.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        announce: Callable[[], None],
        ending: asyncio.Event,
        handle_signals: bool = True,
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._ending = ending
        self._handle_signals = handle_signals

    async def main_loop(self) -> None:
        """Serve until the server is stopped."""
        self._announce()
        await super().main_loop()
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle Ctrl-C, unless the parent process stops the server."""
        with super().capture_signals() if self._handle_signals else contextlib.nullcontext():
            yield
