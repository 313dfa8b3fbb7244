"""The HTTP server under all pages: one process, one event loop."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import final

import uvicorn
from starlette.types import ASGIApp


def settings(app: ASGIApp) -> uvicorn.Config:
    """Return how every server of ours works."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        # What clients get wrong is theirs; what goes wrong here the guard reports.
        log_level="critical",
        access_log=False,
        server_header=False,
        # Nobody stands between: a header must not say where a request comes from.
        proxy_headers=False,
        # Pages keep a connection between two answers, rather than make a new one.
        timeout_keep_alive=120,
        timeout_graceful_shutdown=1,
        # Connections cost memory, whether or not they ever ask for anything.
        limit_concurrency=256,
    )


@final
class Server(uvicorn.Server):
    """Uvicorn's server, which says when it has begun and when it is about to end."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        announce: Callable[[], None],
        ending: asyncio.Event,
        heeds_signals: bool,
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._ending = ending
        self._heeds_signals = heeds_signals

    async def main_loop(self) -> None:
        """Work until told to end."""
        self._announce()
        await super().main_loop()
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Heed Ctrl-C, unless there is a trainer, which then ends this process in its own time."""
        if self._heeds_signals:
            with super().capture_signals():
                yield
        else:
            yield
