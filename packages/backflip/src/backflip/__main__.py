"""The program `backflip`, also `python -m backflip`."""

import contextlib
import os
import signal
import sys

from runshelf.errors import Interrupted
from runshelf.interrupts import interruptible


def console() -> None:
    """Run the command line and exit with its status."""
    try:
        with interruptible(signal.SIGINT):
            from backflip.cli.main import main  # noqa: PLC0415  (Ctrl-C already works here)

            status = main()
    except KeyboardInterrupt:
        sys.stderr.write("backflip: interrupted\n")
        status = Interrupted.exit_status
    if status:
        # Skip the interpreter's shutdown: it crashes or hangs while JAX threads still compute.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # its terminal is closed
                stream.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    console()
