"""The endpoint of a server: host, port, and the secret from which its tokens are derived.

Port and secret are saved, so that open pages stay connected when the server is restarted. They are
kept in the user's cache folder, readable by the owner only, and never in the folder that is served:
that one is shown on pages, copied and shared.
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
from runshelf.index.location import cache_folder
from runshelf.received_json import parse_record
from runshelf.store import opening
from runshelf.store.files import disk_errors
from runshelf.store.opening import NoFile

FIRST_PORT = 8765
LOOPBACK = "127.0.0.1"

_FILE = "page.json"
_ADDRESS_FILE = "address"
_LARGEST_FILE = 4096
_PORTS_TRIED = 100
# A server that is shutting down may keep its port this long.
_RETRY_SECONDS = 3.0


class PortTaken(UsageError):
    """The port is used by another program, or needs special rights."""


@final
@dataclass(frozen=True)
class Endpoint:
    """Where a server listens.

    Attributes:
        host: the IP address that the server is bound to.
        port: the port that the server is bound to.
        secret: the key of its tokens.
        folder: the private folder of what is served.
    """

    host: str
    port: int
    secret: bytes
    folder: Path

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return ipaddress.ip_address(self.host).is_loopback

    def token(self, purpose: Literal["address", "access", "same-site"]) -> str:
        """Return the token for one purpose: an HMAC of the purpose's name."""
        return hmac.new(self.secret, purpose.encode(), hashlib.sha256).hexdigest()

    @property
    def address(self) -> str:
        """The URL to open in a browser. Beyond loopback it has a token, for the user only."""
        token = "" if self.loopback else f"?token={self.token('address')}"
        return self.public_address + token

    @property
    def public_address(self) -> str:
        """The URL without the token."""
        unspecified = ipaddress.ip_address(self.host).is_unspecified
        host = _own_address() if unspecified else self.host
        return f"http://{_in_url(host)}:{self.port}/"

    @property
    def kept_address(self) -> str:
        """The URL to print where the output is kept: instead of the token, the file that has it."""
        return self.public_address + (
            "" if self.loopback else f" (with its token: cat {self.folder / _ADDRESS_FILE})"
        )

    def hosts(self, local_address: str) -> set[str]:
        """Return the valid Host headers of a request.

        Args:
            local_address: the address of this machine that received the request.
        """
        names = {LOOPBACK, "localhost", "[::1]", _in_url(self.host)}
        if not self.loopback:
            here = socket.gethostname().lower()
            names |= {_in_url(_unmapped(local_address)), here, f"{here}.local"}
        without_port = names if self.port == 80 else set[str]()
        return {f"{name}:{self.port}" for name in names} | without_port


def bind_endpoint(
    served: Path, host: str, port: int | None, *, save_port: bool = True
) -> tuple[socket.socket, Endpoint]:
    """Start to listen; save the port, the secret and the address.

    Args:
        served: the folder that is served: a home, or the folder of a run.
        host: the address to bind to.
        port: the port; 0 for any free port; None for the saved port, or else the first free one.
        save_port: whether to replace the saved port. A second server of a folder must not.

    Raises:
        UsageError: the address does not exist, or the port is taken.
        UserFacingError: the cache folder is not writable.
    """
    folder = _made_private(cache_folder(served))
    saved = _load(folder)
    secret = bytes.fromhex(saved["secret"]) if saved else secrets.token_bytes(32)
    listener = _listen(host, port) if port is not None else _listen_anywhere(host, saved)
    bound_host, bound_port = listener.getsockname()[:2]
    endpoint = Endpoint(bound_host, bound_port, secret, folder)
    if save_port or saved is None:
        fields = {"port": bound_port, "secret": secret.hex()}
        _write_private(folder / _FILE, json.dumps(fields))
    if not endpoint.loopback:
        _write_private(folder / _ADDRESS_FILE, endpoint.address + "\n")
    return listener, endpoint


def saved_port(served: Path) -> int | None:
    """Return the port at which a folder was served last; None if it never was."""
    saved = _load(cache_folder(served))
    return saved["port"] if saved else None


def _made_private(folder: Path) -> Path:
    """Make a folder that only the user can read; return it."""
    try:
        for each in (folder.parent, folder):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
            each.chmod(0o700)
    except OSError as error:
        raise UserFacingError(
            f"cannot write to `{folder}` ({error.strerror}): it keeps the page's secret; set "
            "XDG_CACHE_HOME to a folder of your own"
        ) from error
    return folder


def _listen_anywhere(host: str, saved: dict[str, Any] | None) -> socket.socket:
    """Listen at the saved port, which may take a moment to become free, or the first free one."""
    until = time.monotonic() + _RETRY_SECONDS
    while saved and time.monotonic() < until:
        try:
            return _listen(host, saved["port"])
        except PortTaken:
            time.sleep(0.1)
    for port in range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED):
        with contextlib.suppress(PortTaken):
            return _listen(host, port)
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
        # Without this, the port would stay blocked for a minute after the server was killed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _listen_error(host, port, error) from error
    listener.set_inheritable(False)
    return listener


def _listen_error(host: str, port: int, error: OSError) -> UsageError:
    if error.errno not in (errno.EADDRINUSE, errno.EACCES):
        why = f"cannot listen at `{host}`, port {port}: {error.strerror}"
        return UsageError(f"{why}; try --host {LOOPBACK}")
    why = "is taken" if error.errno == errno.EADDRINUSE else "may not be used"
    return PortTaken(
        f"port {port} {why}: try --port {max(port + 1, FIRST_PORT)}, or leave --port out"
    )


def _load(folder: Path) -> dict[str, Any] | None:
    """Return the saved port and secret; None if missing or invalid."""
    try:
        saved = parse_record(opening.read(folder, _FILE, _LARGEST_FILE))
        port, secret = saved["port"], saved["secret"]
        valid = isinstance(port, int) and 0 < port < 65536 and len(bytes.fromhex(secret)) == 32
    except (NoFile, ValueError, KeyError, TypeError):
        return None
    return saved if valid else None


def _write_private(path: Path, text: str) -> None:
    """Replace a file that only the user can read."""
    partial = path.with_name(f".{path.name}.part")
    with disk_errors(path):
        partial.unlink(missing_ok=True)
        # Created with its final mode: others can read it at no time.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        partial.replace(path)


def _own_address() -> str:
    """Return an address at which other machines reach this one, or its host name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # An unused address (TEST-NET-1); connecting a datagram socket sends nothing.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostname()


def _unmapped(address: str) -> str:
    """Return the IPv4 address of an IPv4-mapped IPv6 address; other addresses unchanged."""
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(address)
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
    return address


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()
