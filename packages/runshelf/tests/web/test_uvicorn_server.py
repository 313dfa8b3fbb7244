"""Our settings of Uvicorn: signals that arrive while a request is answered."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A process of its own: handlers of signals belong to the main thread, where the browser of other
# tests has an event loop.
PROGRAM = """
import asyncio, signal, sys, urllib.request
from pathlib import Path

from runshelf.interrupts import Terminated, interruptible
from runshelf.web.serving.address import LOOPBACK, bind_endpoint
from runshelf.web.serving.uvicorn_server import Server, settings

number = signal.Signals(int(sys.argv[1]))


async def app(scope, receive, send):
    signal.raise_signal(number)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def status(address):
    with urllib.request.urlopen(address, timeout=20) as response:
        return response.status


async def serve():
    listener, endpoint = bind_endpoint(Path(sys.argv[2]), LOOPBACK, None)
    server = Server(settings(app), announce=lambda: None, ending=asyncio.Event())
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    print("answered with", await asyncio.to_thread(status, endpoint.address), flush=True)
    await asyncio.wait_for(serving, 20)


try:
    with interruptible(number):
        asyncio.run(serve())
except Terminated:
    print("and stopped")
"""


@pytest.mark.medium
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_during_a_request_stops_the_server(number: signal.Signals, tmp_path: Path) -> None:
    """Uvicorn drops every exception of an application, also that of a signal's handler."""
    command = [sys.executable, "-c", PROGRAM, str(int(number)), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "answered with 204\nand stopped\n", done.stderr
