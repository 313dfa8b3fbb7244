"""The program `backflip`, and `python -m backflip`: of exactly the backflip this Python finds."""

import os
import signal
import sys

from runshelf.errors import Ended, Interrupted
from runshelf.interrupts import interruptible


def console() -> None:
    """Run the command line of this process, and end it with the exit status."""
    try:
        with interruptible(signal.SIGINT):
            from backflip.cli.main import main  # noqa: PLC0415  (Ctrl-C is interruptible by now)

            status = main()
    except KeyboardInterrupt:
        sys.stderr.write("backflip: interrupted\n")
        status = Interrupted.exit_status
    if status in (Interrupted.exit_status, Ended.exit_status):
        # What JAX has begun goes on while Python is taken apart, and would crash into it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    console()
