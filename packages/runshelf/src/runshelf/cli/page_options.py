"""Options of commands that serve a page, and opening the page in the browser."""

import argparse
import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runshelf.cli.arguments import whole
from runshelf.environment import variable

if TYPE_CHECKING:
    from runshelf.web.serving.address import Endpoint

LOCAL = "127.0.0.1"  # pages listen on this machine only, unless `--host` says otherwise


def add_server_options(parser: argparse.ArgumentParser, group: str) -> Any:
    """Add `--open`, `--port` and `--host` under a heading; return the group of options."""
    page = parser.add_argument_group(group)
    page.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the page in a browser; default: if this machine has a screen",
    )
    page.add_argument(
        "--port",
        type=whole(1, 65_535, 8765),
        metavar="N",
        help="default: the last one used, else 8765",
    )
    page.add_argument(
        "--host",
        default=LOCAL,
        metavar="ADDRESS",
        help="listen on this address, not only on this machine; visitors need a token",
    )
    return page


def page_opener(options: argparse.Namespace, what: str) -> Callable[[str], str]:
    """Return `open_page` with the options of a command; it takes the address."""
    opens = has_screen(os.environ) if options.open is None else options.open
    return functools.partial(open_page, environ=os.environ, opens=opens, what=what)


def printed_address(endpoint: "Endpoint") -> str:
    """Return the address to print: without the token if a run keeps what this process prints."""
    return endpoint.kept_address if variable("RUN") else endpoint.address


def has_screen(environ: Mapping[str, str]) -> bool:
    """Return whether this machine has a screen for a browser."""
    if "SSH_CONNECTION" in environ or "SSH_TTY" in environ:
        return False
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & environ.keys())


def open_page(
    address: str, environ: Mapping[str, str], *, opens: bool, what: str = "compare clips"
) -> str:
    """Open the page at `address` if wanted; return the message for the user.

    Args:
        address: the address of the page.
        environ: the process's environment.
        opens: whether to open the page here.
        what: what the user can do on the page.
    """
    import webbrowser

    place = urlsplit(address)
    # Other addresses have a token, which other users could read in a browser's command line.
    if place.hostname not in ("127.0.0.1", "localhost", "::1"):
        return f"{what} at {address}"
    if opens and webbrowser.open(address):
        return f"{what} at {address} (opened in your browser)"
    if has_screen(environ):
        return f"{what} at {address}"
    # "client address, client port, server address, server port"
    connection = environ.get("SSH_CONNECTION", "").split()
    machine = connection[2] if len(connection) == 4 else "THIS_MACHINE"
    login = f"{environ.get('USER', 'USER')}@{machine}"
    forward = f"ssh -L {place.port}:127.0.0.1:{place.port} {login}"
    return f"{what} at {address} (from another machine, first: {forward})"
