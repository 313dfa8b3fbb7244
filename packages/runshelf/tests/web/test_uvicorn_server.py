"""Our settings of Uvicorn: signals that arrive while a request is answered."""

import asyncio
import signal
import urllib.request
from typing import Any

import pytest

from runshelf.interrupts import Terminated, interruptible
from runshelf.web.address import LOOPBACK, bind_endpoint
from runshelf.web.uvicorn_server import Server, settings


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_during_a_request_stops_the_server(number: signal.Signals, tmp_path: Any) -> None:
    """Uvicorn drops every exception of an application, also that of a signal's handler."""
    answered: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        signal.raise_signal(number)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def serve() -> None:
        listener, endpoint = bind_endpoint(tmp_path, LOOPBACK, None)
        server = Server(settings(app), announce=lambda: None, ending=asyncio.Event())
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        answered.append(await asyncio.to_thread(_status, endpoint.address))
        await asyncio.wait_for(serving, 20)

    with pytest.raises(Terminated), interruptible(number):
        asyncio.run(serve())
    assert answered == [204]


def _status(address: str) -> int:
    with urllib.request.urlopen(address, timeout=20) as response:
        return response.status
