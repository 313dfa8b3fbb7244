"""The program that serves the labelling page: `python -m backflip.labelling.page RUN_FOLDER`.

It prints one JSON line when the page can be opened: `address`, `port`, and `shown`, the address for
output that is kept, without its token. A trainer keeps its output, so it never gets the token. An
error is one line on stderr with exit status 1, or 2 for wrong usage.
"""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from backflip.labelling.page_server import serve
from runshelf.environment import variable
from runshelf.errors import UserFacingError
from runshelf.terminal_text import put
from runshelf.web.serving.address import LOOPBACK, Endpoint


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the process is asked to end; return the exit status."""
    options = _parser().parse_args(argv)
    if options.parent:
        # Ctrl-C also reaches the trainer, which then ends this process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        serve(
            options.folder,
            host=options.host,
            port=options.port,
            overlap=options.overlap,
            who=options.who,
            parent=options.parent,
            announce=lambda endpoint: _announce(endpoint, options.parent or bool(variable("RUN"))),
        )
    except UserFacingError as error:
        return _failed(str(error), error.exit_status)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001  (every error becomes one line)
        return _failed(f"unexpected {type(error).__name__}: {error}", 1)
    return 0


def _announce(endpoint: Endpoint, kept: bool) -> None:
    address = endpoint.public_address if kept else endpoint.address
    fields = {"address": address, "port": endpoint.port, "shown": endpoint.kept_address}
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _failed(message: str, status: int) -> int:
    put(f"backflip.labelling: error: {' '.join(message.split())}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m backflip.labelling.page", description="Serve a run."
    )
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on")
    parser.add_argument("--port", type=_port, help="default: the last one, else from 8765 up")
    parser.add_argument("--overlap", type=float, default=0.0, help="share shown to two people")
    parser.add_argument("--who", default="me", help="default name of a labeller")
    parser.add_argument("--parent", action="store_true", help="end when standard input ends")
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"`{text}` is not a port (expected 0 to 65535)")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
