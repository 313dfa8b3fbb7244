"""Uvicorn with our settings and connections, and callbacks when it starts and stops."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, final

import uvicorn
from starlette.types import ASGIApp

from runshelf.web.serving.bounded_log import report
from runshelf.web.serving.connections import (
    KEEP_ALIVE_SECONDS,
    Connection,
    Connections,
    accept_connections,
    drop_late_connections,
    most_connections,
)


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
        timeout_keep_alive=int(KEEP_ALIVE_SECONDS),
        timeout_graceful_shutdown=1,
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
        self._background: list[asyncio.Future[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets=[])
        asyncio.get_running_loop().set_exception_handler(_report_error)
        connections = Connections(most_connections())
        self._background = [asyncio.ensure_future(drop_late_connections(connections))]
        for listener in sockets or []:
            accepting = accept_connections(listener, connections, lambda: self._made(connections))
            self._background.append(asyncio.ensure_future(accepting))

    async def main_loop(self) -> None:
        """Serve until the server is stopped."""
        self._announce()
        await super().main_loop()
        self._ending.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and close those that are open."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals that stop the server, unless its parent process stops it.

        Uvicorn leaves SIGHUP to the handler of the program. That one raises an exception, and
        Uvicorn drops exceptions that are raised while a request is answered.
        """
        if not self._handle_signals:
            yield
            return
        with super().capture_signals(), _handled(signal.SIGHUP, self.handle_exit):
            yield

    def _made(self, connections: Connections) -> Connection:
        return Connection(
            connections,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


@contextlib.contextmanager
def _handled(
    number: signal.Signals, handle: Callable[[int, FrameType | None], None]
) -> Generator[None, None, None]:
    """Handle a signal in the block, unless the process ignores it, as under `nohup`."""
    before = signal.getsignal(number)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is None or before == signal.SIG_IGN:
        yield
        return
    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


def _report_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error in the event loop as one line."""
    error = context.get("exception")
    cause = "" if error is None else f" ({type(error).__name__}: {error})"
    report(f"runshelf.web: {context['message']}{cause}")
