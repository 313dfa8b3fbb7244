"""The entry point of `runshelf` and `python -m runshelf`."""

import signal
import sys

from runshelf.errors import Interrupted
from runshelf.interrupts import interruptible


def console() -> None:
    """Run the command line of this process and exit with its status."""
    try:
        with interruptible(signal.SIGINT):
            from runshelf.cli.main import main  # noqa: PLC0415  (Ctrl-C must be handled before this)

            status = main()
    except KeyboardInterrupt:
        sys.stderr.write("runshelf: interrupted\n")
        status = Interrupted.exit_status
    sys.exit(status)


if __name__ == "__main__":
    console()
