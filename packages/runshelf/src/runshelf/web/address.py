"""Where a server listens: its port, and the secret that its tokens are made of.

Both are kept in a folder, readable by the owner only, so that pages stay connected when a server
is restarted.
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

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.files import disk_errors

FIRST_PORT = 8765
LOOPBACK = "127.0.0.1"

_FILE = "page.json"
_PORTS_TRIED = 100
# A server that is about to end may keep its port for so long.
_PATIENCE_SECONDS = 3.0
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


class PortTaken(UsageError):
    """The port is used by another program, or needs special rights."""


@final
@dataclass(frozen=True)
class Place:
    """Where a server listens.

    Attributes:
        host: the address it is bound to.
        port: the port it is bound to.
        secret: the key of its tokens.
    """

    host: str
    port: int
    secret: bytes

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    def token(self, purpose: Literal["address", "access", "same-site"]) -> str:
        """Return a token for one purpose: a keyed hash of its name."""
        return hmac.new(self.secret, purpose.encode(), hashlib.sha256).hexdigest()

    @property
    def address(self) -> str:
        """The address for a browser."""
        if self.loopback:
            return f"http://{_in_url(self.host)}:{self.port}/"
        unspecified = ipaddress.ip_address(self.host).is_unspecified
        host = _own_address() if unspecified else self.host
        return f"http://{_in_url(host)}:{self.port}/?token={self.token('address')}"

    def hosts(self, arrived_at: str) -> set[str]:
        """Return the valid Host headers of a request.

        Args:
            arrived_at: the address of this machine that received the request.
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
    """Start to listen, and write the port and the secret to `folder`.

    Args:
        folder: where they are kept.
        host: the address to bind to.
        port: the port; 0 for any; None for the last one, otherwise the first free one.
        lasting: whether the port replaces the one in the folder; a second server of the same
            folder must not.

    Raises:
        UsageError: there is no such address, or the port is taken.
        UserFacingError: the folder cannot be written to.
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
    """Listen at the last port as soon as it is free, otherwise at the first free one."""
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
    raise UserFacingError(
        f"ports {FIRST_PORT} to {last} are all taken: choose a free one with --port"
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, OverflowError, UnicodeError):
        raise UsageError(f"`{host}` is not an address: try --host {LOOPBACK}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        # Otherwise the port could not be used for a minute after a kill.
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
        f"port {port} {why}: try --port {max(port + 1, FIRST_PORT)}, or leave --port out"
    )


def _remembered(folder: Path) -> dict[str, Any] | None:
    """Return the port and the secret in the folder; None if there are no valid ones."""
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
        # Never readable by others, not even briefly.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        partial.replace(path)


def _own_address() -> str:
    """Return an address at which others reach this machine, or its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # An unused address (TEST-NET-1); connecting a datagram socket sends nothing.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostname()


def _unmapped(address: str) -> str:
    """Return the IPv4 address of an IPv4-mapped IPv6 address; any other address as it is."""
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(address)
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
    return address


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()
