"""The program `backflip`, also `python -m backflip`."""

import os
import signal
import sys

from runshelf.errors import Ended, Interrupted
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
    if status in (Interrupted.exit_status, Ended.exit_status):
        # Skip the interpreter's shutdown: it crashes while JAX threads still compute.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    console()
