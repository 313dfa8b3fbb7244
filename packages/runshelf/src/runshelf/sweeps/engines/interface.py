"""The Protocol of engines. An engine starts and stops workers; claims do everything else.

A worker is the command line `python -m runshelf sweep FOLDER --work`. It needs nothing but the
sweep's folder, so an engine passes no functions and no results.
"""

import sys
from pathlib import Path
from typing import NamedTuple, Protocol, final

ENGINES = ("processes", "ray", "slurm")


@final
class WorkerEnd(NamedTuple):
    """How a worker ended.

    Attributes:
        status: its exit status, negative for a signal; None if the engine does not know.
        said: the last line that it printed on stderr; may be empty.
    """

    status: int | None
    said: str


class Engine(Protocol):
    """Starts workers of one sweep, on this machine or on others."""

    def start(self, workers: int) -> None:
        """Start more workers.

        Raises:
            UserFacingError: they cannot be started.
        """
        ...

    def alive(self) -> int:
        """Return how many workers run or wait for a place to run."""
        ...

    def ended(self) -> list[WorkerEnd]:
        """Return the ends of workers that were not returned before."""
        ...

    def stop(self) -> None:
        """Ask all workers to give their blocks up, and wait for their ends."""
        ...


def worker_command(folder: Path) -> list[str]:
    """Return the command line of a worker of the sweep in a folder."""
    return [sys.executable, "-m", "runshelf", "sweep", str(folder), "--work"]
