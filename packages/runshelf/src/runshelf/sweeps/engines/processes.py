"""The default engine: workers are processes of this machine."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, final

from runshelf.environment import exported
from runshelf.errors import UserFacingError
from runshelf.sweeps.engines.interface import WorkerEnd, worker_command
from runshelf.sweeps.worker import DRIVER

_MOST_SAID = 4096


@final
class Processes:
    """Workers as child processes. They end after their present block if this process dies.

    Args:
        folder: the folder of the sweep.
        more: further words of each worker's command line.
    """

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        self._command = [*worker_command(folder), *more]
        self._workers: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        self._ends: list[WorkerEnd] = []

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run."""
        return [worker.pid for worker, _ in self._workers if worker.poll() is None]

    def start(self, workers: int) -> None:
        """Start more workers."""
        environ = {**os.environ, **exported({DRIVER: str(os.getpid())})}
        for _ in range(workers):
            said = tempfile.TemporaryFile()  # noqa: SIM115  (`_end_of` closes it)
            try:
                worker = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=environ,
                    start_new_session=True,  # Ctrl-C reaches the driver, which stops the workers
                )
            except OSError as error:
                said.close()
                reason = error.strerror or str(error)
                raise UserFacingError(f"cannot start a worker: {reason}") from error
            self._workers.append((worker, said))

    def alive(self) -> int:
        """Return how many workers run."""
        return len(self.pids)

    def ended(self) -> list[WorkerEnd]:
        """Return the ends of workers that were not returned before."""
        self._collect()
        ends, self._ends = self._ends, []
        return ends

    def stop(self) -> None:
        """Send SIGTERM to all workers, and wait for their ends."""
        for worker, _ in self._workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker, _ in self._workers:
            worker.wait()
        self._collect()

    def _collect(self) -> None:
        over = [(worker, said) for worker, said in self._workers if worker.poll() is not None]
        self._workers = [one for one in self._workers if one not in over]
        self._ends += [_end_of(worker, said) for worker, said in over]


def _end_of(worker: "subprocess.Popen[bytes]", said: IO[bytes]) -> WorkerEnd:
    with said:
        end = said.seek(0, os.SEEK_END)
        said.seek(max(end - _MOST_SAID, 0))
        lines = said.read().decode(errors="replace").splitlines()
    return WorkerEnd(worker.returncode, next((line for line in reversed(lines) if line), ""))
