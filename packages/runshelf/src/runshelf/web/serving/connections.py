"""The connections of a server: how many there are, and how long each may take.

Clients that only hold connections must not keep others from their pages. When there are too many
connections, the one that has waited longest for its next request is dropped for a new one. A
request must arrive in time, and a response must be read in time.
"""

import asyncio
import contextlib
import ipaddress
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol, final, runtime_checkable

from uvicorn.protocols.http.h11_impl import H11Protocol

from runshelf.web.serving.bounded_log import report

MOST = 256
MOST_PER_ADDRESS = 128  # browsers open 6; all users behind a tunnel have one address
REQUEST_SECONDS = 15.0  # for a whole request, from the connection or its first byte on
KEEP_ALIVE_SECONDS = 120.0
READ_SECONDS = 30.0  # for a client to read a response, and a second more for each `SLOWEST` bytes
SLOWEST = 16 * 1024
CLOSE_SECONDS = 5.0  # for a client to read the end of a response on a closing connection

_RESERVED = 64  # descriptors for files, the index and threads
_LEAST = 8
_RETRY_SECONDS = 0.1
_CHECK_SECONDS = 1.0
_LOST_SECONDS = 60  # until a client that vanished without a word counts as lost
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@runtime_checkable
class Held(Protocol):
    """A connection, as it is counted."""

    address: str
    since: float

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a request, or for the rest of one."""
        ...

    def is_late(self, now: float) -> bool:
        """Return whether the client has taken too long."""
        ...

    def drop(self) -> None:
        """Close the connection at once."""
        ...


def most_connections() -> int:
    """Return how many connections this process may have: some descriptors stay for files."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if descriptors < 0 else max(_LEAST, min(MOST, descriptors - _RESERVED))


@final
class Connection(H11Protocol):
    """One connection, with time limits.

    Args:
        known: all connections of the server.
        options: for the base class.

    Attributes:
        address: what stands for the client.
        since: when it began to wait for a request, or when the first byte of that came.
    """

    def __init__(self, known: "Connections", **options: Any) -> None:
        super().__init__(**options)
        self._known = known
        self.address = ""
        self.since = time.monotonic()
        self._allowed = REQUEST_SECONDS
        self._read_until: float | None = None
        self._closing_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a request, or for the rest of one."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete or cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start to wait for the first request."""
        super().connection_made(transport)
        self.address = address_key(self.client[0] if self.client else "")
        self._known.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._known.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request, which must be whole in time."""
        if self.is_waiting and self._allowed != REQUEST_SECONDS:
            self._wait(REQUEST_SECONDS)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request. Browsers send it now; what came earlier is not answered."""
        self._wait(KEEP_ALIVE_SECONDS)
        if self.conn.trailing_data[0]:
            self.transport.close()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Limit how long the client may take to read what is sent."""
        unread = self.transport.get_write_buffer_size()
        self._read_until = time.monotonic() + READ_SECONDS + unread / SLOWEST
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has read enough."""
        self._read_until = None
        super().resume_writing()

    def is_late(self, now: float) -> bool:
        """Return whether the client has taken too long."""
        if self._read_until is not None:
            return now > self._read_until
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            return now > self._closing_since + CLOSE_SECONDS
        return self.is_waiting and now > self.since + self._allowed

    def drop(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def _wait(self, seconds: float) -> None:
        self.since, self._allowed = time.monotonic(), seconds


@final
class Connections:
    """All connections of a server.

    Args:
        most: the largest number of connections.
        most_per_address: the largest number of connections from one address.
    """

    def __init__(self, most: int, most_per_address: int = MOST_PER_ADDRESS) -> None:
        self._most, self._most_per_address = most, most_per_address
        self._open: set[Held] = set()

    def add(self, connection: Held) -> None:
        """Count a connection."""
        self._open.add(connection)

    def discard(self, connection: Held) -> None:
        """Count a connection no more."""
        self._open.discard(connection)

    def has_room(self, client: str) -> bool:
        """Make room for a connection from an address; return whether that was possible."""
        counts = Counter(one.address for one in self._open)
        address = address_key(client)
        if counts[address] >= self._most_per_address:
            return self._drop_one([one for one in self._open if one.address == address])
        if len(self._open) < self._most:
            return True
        # Those who hold many connections lose one first.
        waiting = {one.address for one in self._open if one.is_waiting}
        most = max((counts[address] for address in waiting), default=0)
        return self._drop_one([one for one in self._open if counts[one.address] == most])

    def drop_late(self) -> None:
        """Close the connections of clients that have taken too long."""
        now = time.monotonic()
        for connection in [one for one in self._open if one.is_late(now)]:
            connection.drop()

    def _drop_one(self, candidates: list[Held]) -> bool:
        """Drop the one of some connections that has waited longest, if any waits."""
        waiting = [one for one in candidates if one.is_waiting]
        if waiting:
            longest = min(waiting, key=lambda one: one.since)
            self.discard(longest)  # now, not when the event loop has closed it
            longest.drop()
        return bool(waiting)


def address_key(address: str) -> str:
    """Return what stands for a client: its address, of IPv6 the network of 64 bits."""
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
            return str(ipaddress.ip_network((found, 64), strict=False))
    return address


async def accept_connections(
    listener: socket.socket, connections: Connections, make: Callable[[], Connection]
) -> None:
    """Accept connections until cancelled.

    asyncio's own loop would accept before it can count, and print a page for each connection for
    which no descriptor is left.
    """
    listener.setblocking(False)
    while True:
        try:
            await _accept(listener, connections, make)
        except OSError:  # no descriptor is left, or the client has gone
            await asyncio.sleep(_RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001  (must not end the server)
            report(f"runshelf.web: a connection failed ({type(error).__name__}: {error})")
            await asyncio.sleep(_RETRY_SECONDS)


async def _accept(
    listener: socket.socket, connections: Connections, make: Callable[[], Connection]
) -> None:
    """Accept one connection, or refuse it if there is no room."""
    loop = asyncio.get_running_loop()
    accepted, client = await loop.sock_accept(listener)
    with contextlib.suppress(OSError):  # the client has gone
        if connections.has_room(client[0]):
            _notice_loss(accepted)
            await loop.connect_accepted_socket(make, accepted)
            return
        accepted.send(_REFUSAL)
    accepted.close()
    await asyncio.sleep(0)  # others have their turn in a flood


async def drop_late_connections(connections: Connections) -> None:
    """Close the connections of clients that take too long, until cancelled."""
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        connections.drop_late()


def _notice_loss(accepted: socket.socket) -> None:
    """Let the system notice when a client has vanished."""
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE"):  # Linux, macOS
        if hasattr(socket, name):
            accepted.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), _LOST_SECONDS)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _LOST_SECONDS * 1000)
