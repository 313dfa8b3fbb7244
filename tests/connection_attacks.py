"""Attacks on the connections of a server; each opens some and leaves them open."""

import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from tests.server_client import Server

Attack = Callable[[Server], list[socket.socket]]
MANY = 300  # more than a server accepts
RETRIES = 10  # after a refusal


@contextlib.contextmanager
def descriptors(most: int) -> Generator[None, None, None]:
    """Let this process, and those that it starts in the block, have so many descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connected(server: Server, data: bytes, count: int = MANY) -> list[socket.socket]:
    """Open connections and send the same bytes on each, as far as the server lets."""
    found: list[socket.socket] = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        found.append(connection)
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.send(data)
    return found


def idle(server: Server) -> list[socket.socket]:
    """Connections that send nothing."""
    return connected(server, b"")


def half_a_head(server: Server) -> list[socket.socket]:
    """Requests whose head does not end."""
    return connected(server, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")


def half_closed(server: Server) -> list[socket.socket]:
    """Clients that have sent half a request and the end of their data."""
    found = half_a_head(server)
    for connection in found:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
    return found


def slow_bodies(server: Server) -> list[socket.socket]:
    """Requests with the correct token, whose body does not end."""
    token = server.get("/").body.decode().partition('name="token" content="')[2][:64]
    for_all = _head(server, "POST", "/api/take") + f"X-Token: {token}\r\n"
    head = f"{for_all}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    return connected(server, head.encode() + b'{"who"')


def bodies_of_get(server: Server) -> list[socket.socket]:
    """Requests that need no body, with a body that does not end."""
    return connected(server, (_head(server) + "Transfer-Encoding: chunked\r\n\r\n").encode())


def unread(server: Server) -> list[socket.socket]:
    """Pipelined requests whose responses nobody reads."""
    return connected(server, (_head(server) + "\r\n").encode() * 100)


def unread_streams(path: str) -> Attack:
    """Return an attack: streams of events that nobody reads."""
    return lambda server: connected(server, (_head(server, path=path) + "\r\n").encode())


def garbage(server: Server) -> list[socket.socket]:
    """Bytes that are no HTTP."""
    return connected(server, os.urandom(2000))


ATTACKS: Sequence[Attack] = (
    *(idle, half_a_head, half_closed, slow_bodies, bodies_of_get, unread, garbage),
)


def withstands(server: Server, attack: Attack) -> int:
    """Check that the page answers during an attack; return the number of connections tried.

    While all connections have a response in work, a server may refuse one more and say when to
    retry. A slow machine needs a moment for hundreds of requests.
    """
    held = attack(server)
    try:
        for _ in range(5):
            answer = server.get("/")
            for _ in range(RETRIES):
                if answer.status != 503:
                    break
                time.sleep(float(answer.headers["Retry-After"]))
                answer = server.get("/")
            assert answer.status == 200
    finally:
        for connection in held:
            connection.close()
    return len(held)


def drops_all(server: Server, *attacks: Attack) -> int:
    """Check that the server itself closes all connections; return the number tried."""
    before = open_descriptors(server)
    held = [connection for attack in attacks for connection in attack(server)]
    end = time.monotonic() + 300.0
    while open_descriptors(server) > before:
        assert time.monotonic() < end, "connections stay open"
        time.sleep(0.5)
    for connection in held:
        connection.close()
    return len(held)


def open_descriptors(server: Server) -> int:
    """Return how many descriptors the server's process has open."""
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def _head(server: Server, method: str = "GET", path: str = "/") -> str:
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
