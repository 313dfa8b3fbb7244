"""A server process started with `runshelf serve`, and a client."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.server_client import Server

COMMAND = Path(sys.executable).with_name("runshelf")


def start(home: Path, *options: str) -> Server:
    """Start a server; wait until it has indexed all runs."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home / ".cache")}
    process = subprocess.Popen(
        [COMMAND, "serve", "--no-open", "--home", str(home), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+:(\d+)/\S*", line)
    assert found, process.stderr and process.stderr.read()
    server = Server(home, process, found[0], int(found[1]))
    expected = len(list(home.glob("runs/*/run.json")))
    if "token=" not in server.address:
        until(lambda: shown_total(server) >= expected)
    return server


@contextlib.contextmanager
def serving(home: Path, *options: str) -> Generator[Server, None, None]:
    """Run a server during the block; fail if it has written to stderr."""
    server = start(home, *options)
    try:
        yield server
    finally:
        server.process.kill()
        _, errors = server.process.communicate(timeout=20)
    assert not errors, f"the server wrote: {errors}"


def shown_total(server: Server) -> int:
    """Return the number of runs in the table."""
    found = re.search(r"of ([\d ]+)</span>", server.get("/?show=runs").body.decode())
    return int(found[1].replace(" ", "")) if found else 0


def address(path: str, /, **query: str) -> str:
    """Return a path with a query."""
    return f"{path}?{urlencode(query)}" if query else path


def page(server: Server, where: str, status: int = 200, /, **query: str) -> str:
    """Return the HTML of a page."""
    response = server.get(address(where, **query))
    assert response.status == status, response.body[:500]
    return response.body.decode()


def until(fact: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until `fact` returns a true value; return it."""
    end = time.monotonic() + seconds
    while not (found := fact()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def listening(
    server: Server, path: str, **headers: str
) -> Generator[Iterator[tuple[str, str, str]], None, None]:
    """Open an event stream; yield an iterator over (name, data, id)."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{more}\r\n"
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection,
        connection.makefile("rb") as lines,
    ):
        connection.sendall(head.encode())
        yield _events(line.decode().rstrip("\r\n") for line in lines)


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    name = data = position = ""
    for line in lines:
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            data = value
        elif key == "id":
            position = value
        elif line == "" and name:
            yield name, data, position
            name = data = ""


def stream_of(text: str) -> str:
    """Return the address of a page's stream."""
    found = re.search(r'data-live="([^"]+)"', text)
    assert found
    return found[1].replace("&amp;", "&")


def quoted(path: str) -> str:
    """Return a path quoted for an address."""
    return quote(path, safe="")
