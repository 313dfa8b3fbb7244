"""Opens a page in the browser, or says how to reach it."""

import sys
import webbrowser
from collections.abc import Mapping
from urllib.parse import urlsplit


def usually_opens(environ: Mapping[str, str]) -> bool:
    """Return whether this machine has a screen for a browser."""
    if "SSH_CONNECTION" in environ or "SSH_TTY" in environ:
        return False
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & environ.keys())


def invite(
    address: str, environ: Mapping[str, str], *, opens: bool, what: str = "compare clips"
) -> str:
    """Open the page at `address` if wanted; return the message for the user.

    Args:
        address: where the page listens.
        environ: the process's environment.
        opens: whether to open it here.
        what: what the page is for.
    """
    if opens and webbrowser.open(address):
        return f"{what} at {address} (opened in your browser)"
    if usually_opens(environ):
        return f"{what} at {address}"
    place = urlsplit(address)
    if place.hostname not in ("127.0.0.1", "localhost", "::1"):
        return f"{what} at {address}"
    forward = f"ssh -L {place.port}:127.0.0.1:{place.port} {_this_machine(environ)}"
    return f"{what} at {address} (from another machine, first: {forward})"


def _this_machine(environ: Mapping[str, str]) -> str:
    """Return the user and address to log in to; over SSH the address of this login."""
    # "client address, client port, server address, server port"
    connection = environ.get("SSH_CONNECTION", "").split()
    user = environ.get("USER", "USER")
    return f"{user}@{connection[2] if len(connection) == 4 else 'THIS_MACHINE'}"
