"""Where the pages of a run are: the port they keep and the secret their tokens are made of.

Both are kept in the run's folder, readable by its owner only, so that a server started again after
a kill is the same one to the pages that are open.
"""

import contextlib
import errno
import hashlib
import hmac
import ipaddress
import json
import os
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from backflip.archive.files import disk_errors
from backflip.core.errors import BackflipError, UsageError

FIRST_PORT = 8765
LOOPBACK = "127.0.0.1"

_FILE = "page.json"
_PORTS_TRIED = 100
# As long as a server that is about to end, because its trainer was killed, may keep its port.
_PATIENCE_SECONDS = 3.0
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


class PortTaken(UsageError):
    """Another program listens at a port, or it is not for everybody."""


@final
@dataclass(frozen=True)
class Place:
    """Where a server listens.

    Attributes:
        host: the address it is bound to.
        port: the port it is bound to.
        secret: what its tokens are made of.
    """

    host: str
    port: int
    secret: bytes

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    def token(self, purpose: Literal["address", "access", "same-site"]) -> str:
        """Return what proves that the server itself has handed it out for one purpose."""
        return hmac.new(self.secret, purpose.encode(), hashlib.sha256).hexdigest()

    @property
    def address(self) -> str:
        """What to type into a browser."""
        if self.loopback:
            return f"http://{_in_url(self.host)}:{self.port}/"
        unspecified = ipaddress.ip_address(self.host).is_unspecified
        host = _own_address() if unspecified else self.host
        return f"http://{_in_url(host)}:{self.port}/?token={self.token('address')}"

    def hosts(self, arrived_at: str) -> set[str]:
        """Return what may stand in a request's Host header.

        Args:
            arrived_at: the address of this machine at which the request came in.
        """
        names = {LOOPBACK, "localhost", "[::1]", _in_url(self.host)}
        if not self.loopback:
            here = socket.gethostname().lower()
            names |= {_in_url(_unmapped(arrived_at)), here, f"{here}.local"}
        without_port = names if self.port == 80 else set[str]()
        return {f"{name}:{self.port}" for name in names} | without_port


def take_place(
    folder: Path, host: str, port: int | None, *, lasting: bool = True
) -> tuple[socket.socket, Place]:
    """Begin to listen, and remember where in the run's folder.

    Args:
        folder: the run's.
        host: the address to bind to.
        port: the port; 0 for any; None for the one it had before, else the first one free.
        lasting: this is where the run's page is to be found from now on; else it is only if
            nothing is remembered, as a second server must not move the page of the first.

    Raises:
        UsageError: there is no such address, or the port is taken.
        BackflipError: nothing can be written to the folder.
    """
    kept = _remembered(folder)
    secret = bytes.fromhex(kept["secret"]) if kept else secrets.token_bytes(32)
    listener = _listen(host, port) if port is not None else _listen_again(host, kept)
    bound_host, bound_port = listener.getsockname()[:2]
    place = Place(bound_host, bound_port, secret)
    if lasting or kept is None:
        _remember(folder, place)
    return listener, place


def _listen_again(host: str, kept: dict[str, Any] | None) -> socket.socket:
    """Listen at the port remembered as soon as it is free, else at the first one free."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while kept and time.monotonic() < until:
        try:
            return _listen(host, kept["port"])
        except PortTaken:
            time.sleep(0.1)
    for port in range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED):
        try:
            return _listen(host, port)
        except PortTaken:
            continue
    last = FIRST_PORT + _PORTS_TRIED - 1
    raise BackflipError(
        f"ports {FIRST_PORT} to {last} are all taken: give one that is free, --port"
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, OverflowError, UnicodeError):
        raise UsageError(f"`{host}` is no address: try --host {LOOPBACK}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        # Without it the port would be out of use for a minute after a kill.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _why_not(host, port, error) from error
    listener.set_inheritable(False)
    return listener


def _why_not(host: str, port: int, error: OSError) -> UsageError:
    if error.errno not in _TAKEN:
        why = f"cannot listen at `{host}`, port {port}: {error.strerror}"
        return UsageError(f"{why}; try --host {LOOPBACK}")
    why = "is taken" if error.errno == errno.EADDRINUSE else "may not be used"
    return PortTaken(
        f"port {port} {why}: give another, --port {max(port + 1, FIRST_PORT)}, or none"
    )


def _remembered(folder: Path) -> dict[str, Any] | None:
    """Return what was remembered; None if there is nothing, or nothing that makes sense."""
    try:
        kept: dict[str, Any] = json.loads((folder / _FILE).read_text())
        port, secret = kept["port"], kept["secret"]
        sensible = isinstance(port, int) and 0 < port < 65536 and len(bytes.fromhex(secret)) == 32
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if sensible else None


def _remember(folder: Path, place: Place) -> None:
    path, partial = folder / _FILE, folder / f".{_FILE}.part"
    text = json.dumps({"port": place.port, "secret": place.secret.hex()})
    with disk_errors(path):
        partial.unlink(missing_ok=True)
        # Never, not even for a moment, readable by others.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        partial.replace(path)


def _own_address() -> str:
    """Return an address at which others reach this machine, or its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Of TEST-NET-1, where nobody is; connecting a datagram socket sends nothing.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostname()


def _unmapped(address: str) -> str:
    """Return an IPv4 address that a socket for both kinds has dressed up as IPv6, as it was."""
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(address)
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
    return address


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()
