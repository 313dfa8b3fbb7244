"""The command `runshelf`, and `python -m runshelf`."""

import signal
import sys

from runshelf.errors import Interrupted
from runshelf.interrupts import interruptible


def console() -> None:
    """Run the command line and exit with its status."""
    try:
        with interruptible(signal.SIGINT):
            from runshelf.cli.main import main  # noqa: PLC0415  (Ctrl-C is handled by now)

            status = main()
    except KeyboardInterrupt:
        sys.stderr.write("runshelf: interrupted\n")
        status = Interrupted.exit_status
    sys.exit(status)


if __name__ == "__main__":
    console()
