"""Options of commands that serve pages, and how a user is led to a page."""

import argparse
import functools
import os
from collections.abc import Callable

from runshelf.cli.arguments import whole

LOCAL = "127.0.0.1"  # pages listen on this machine only, unless `--host` says otherwise


def add_server_options(parser: argparse.ArgumentParser, group: str) -> None:
    """Add `--open`, `--port` and `--host` under a heading."""
    page = parser.add_argument_group(group)
    page.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the page in a browser; default: where there is a screen",
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
        help="listen there instead of on this machine only; the printed address has a token",
    )


def inviting(options: argparse.Namespace, what: str) -> Callable[[str], str]:
    """Return a function that opens a page at an address if wanted, and returns what to print."""
    from runshelf.cli.invite import invite, usually_opens

    opens = usually_opens(os.environ) if options.open is None else options.open
    return functools.partial(invite, environ=os.environ, opens=opens, what=what)
