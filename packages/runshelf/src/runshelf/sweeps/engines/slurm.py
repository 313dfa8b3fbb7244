"""The engine `slurm` (extra `slurm`): workers are elements of job arrays.

submitit writes the sbatch scripts and knows the names of their options. A script holds the command
line of a worker: no function is pickled. `cluster=local` starts the same commands on this machine
with submitit's local executor, to try a sweep without Slurm.
"""

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from runshelf.errors import UsageError, UserFacingError, did_you_mean
from runshelf.snapshot.command_settings import parse_value
from runshelf.store.writing import make_folder, replace_file
from runshelf.sweeps.engines.interface import WorkerEnd, worker_command

LOGS = "slurm"
_OWN = ("array_limit", "cluster", "poll")
_ARRAY_LIMIT = 1000  # elements of an array, where Slurm does not say; its own default is 1001
_MINUTES = 60
_POLL_SECONDS = 10.0  # a scheduler must not be asked four times a second
_STOP_SECONDS = 60.0


@final
class Slurm:
    """Workers as elements of job arrays.

    Args:
        folder: the folder of the sweep.
        options: those of submitit's Slurm executor, such as `partition`, `time` in minutes,
            `cpus_per_task`, `gpus_per_node` and `mem`; and `array_limit`, `cluster` (`slurm` or
            `local`) and `poll`, the seconds between two looks at the queue.

    Raises:
        UsageError: submitit is not installed, or an option is unknown.
    """

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._submitit = submitit = _imported()
        self._folder = folder
        self._command = shlex.join(worker_command(folder))
        self._own = {name: options[name] for name in _OWN if name in options}
        self._is_local = self._own.get("cluster", "slurm") == "local"
        chosen: dict[str, Any] = {"time": _MINUTES, "job_name": f"sweep-{folder.name}"[:60]}
        chosen |= {n: parse_value(text) for n, text in options.items() if n not in _OWN}
        _check(submitit, chosen, self._own)
        make_folder(folder, LOGS)
        self._parameters = chosen
        self._local = submitit.LocalExecutor(folder=folder / LOGS) if self._is_local else None
        self._jobs: list[Any] = []
        self._ids: list[str] = []
        self._started = self._reported = 0
        self._seen, self._seen_at = 0, -1e9
        self._poll = float(self._own.get("poll", _POLL_SECONDS))

    def scripts(self, workers: int) -> list[str]:
        """Return the sbatch scripts that start so many workers, each below the array limit."""
        return [self._script(size) for size in _cut(workers, self._array_limit())]

    def start(self, workers: int) -> None:
        """Submit job arrays.

        Raises:
            UserFacingError: sbatch is missing, or it refuses a script.
        """
        self._started += workers
        self._seen_at = -1e9
        if self._local is not None:
            self._local.update_parameters(timeout_min=int(self._parameters["time"]))
            self._jobs += [self._local._submit_command(self._command) for _ in range(workers)]
            return
        for number, script in enumerate(self.scripts(workers)):
            name = f"{LOGS}/array-{len(self._ids)}-{number}.sh"
            replace_file(self._folder, name, script.encode())
            said = _called(["sbatch", str(self._folder / name)])
            found = re.search(r"(\d+)\s*$", said)
            if found is None:
                raise UserFacingError(f"sbatch gave no job id: `{said[:200]}`")
            self._ids.append(found[1])

    def alive(self) -> int:
        """Return how many elements run or wait in the queue."""
        if self._local is not None:
            return sum(not job.done(force_check=True) for job in self._jobs)
        if self._ids and time.monotonic() - self._seen_at >= self._poll:
            self._seen, self._seen_at = _in_queue(self._ids), time.monotonic()
        return self._seen if self._ids else 0

    def ended(self) -> list[WorkerEnd]:
        """Return an end for each element that has left the queue; its status is not known."""
        over = self._started - self._reported - self.alive()
        self._reported += max(over, 0)
        return [WorkerEnd(None, self._last_line())] * max(over, 0)

    def stop(self) -> None:
        """Cancel the arrays, and wait until the queue has none of their elements."""
        if self.alive() == 0:
            return
        if self._local is not None:
            for job in self._jobs:
                job.cancel(check=False)
        else:
            _called(["scancel", *self._ids])
        until = time.monotonic() + _STOP_SECONDS
        while self.alive() and time.monotonic() < until:
            self._seen_at = -1e9
            time.sleep(0.2)

    def _script(self, size: int) -> str:
        parameters: dict[str, Any] = {"array_parallelism": size, **self._parameters}
        folder = self._folder / LOGS
        make = self._submitit.slurm.slurm._make_sbatch_string
        return make(self._command, folder, map_count=size, **parameters)

    def _array_limit(self) -> int:
        if "array_limit" in self._own:
            return int(self._own["array_limit"])
        if shutil.which("scontrol"):
            found = re.search(r"MaxArraySize\s*=\s*(\d+)", _called(["scontrol", "show", "config"]))
            # Ids of elements are below MaxArraySize.
            return max(int(found[1]) - 1, 1) if found else _ARRAY_LIMIT
        return _ARRAY_LIMIT

    def _last_line(self) -> str:
        logs = sorted((self._folder / LOGS).glob("*.err"), key=lambda path: path.stat().st_mtime)
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return next((line for line in reversed(lines) if "error: " in line), "")


def _imported() -> Any:
    try:
        import submitit  # noqa: PLC0415  (an extra)
    except ImportError:
        raise UsageError(
            'submitit is not installed; type pip install "runshelf[slurm]", or leave --engine out'
        ) from None
    return submitit


def _check(submitit: Any, chosen: Mapping[str, Any], own: Mapping[str, str]) -> None:
    """Check the options of the engine.

    Raises:
        UsageError: one is unknown or invalid.
    """
    known = [*submitit.SlurmExecutor._valid_parameters(), *_OWN]
    unknown = next((name for name in chosen if name not in known), None)
    if unknown is not None:
        raise UsageError(
            f"the engine `slurm` has no option `{unknown}`{did_you_mean(unknown, known)}; try "
            "--engine-set partition=NAME, time=MINUTES, cpus_per_task=N, mem=8GB"
        )
    if own.get("cluster", "slurm") not in ("slurm", "local"):
        raise UsageError(f"`cluster` must be slurm or local, got `{own['cluster']}`")
    if not own.get("array_limit", "1").isdecimal() or int(own.get("array_limit", "1")) < 1:
        raise UsageError(f"`array_limit` must be at least 1, got `{own['array_limit']}`; try 1000")
    if not re.fullmatch(r"\d+(\.\d+)?", own.get("poll", "1")):
        raise UsageError(f"`poll` must be a number of seconds, got `{own['poll']}`; try 10")
    if type(chosen["time"]) is not int or chosen["time"] < 1:
        raise UsageError(f"`time` must be whole minutes, got `{chosen['time']}`; try time=60")


def _cut(workers: int, limit: int) -> list[int]:
    """Return the sizes of as few arrays as possible, each at most `limit`."""
    return [min(limit, workers - first) for first in range(0, workers, limit)]


def _in_queue(ids: list[str]) -> int:
    """Return how many elements of arrays are in the queue."""
    found = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={','.join(ids)}"],
        capture_output=True,
        text=True,
        check=False,
    )
    # Slurm forgets jobs soon after their end, and then calls their ids invalid.
    return len(found.stdout.split()) if found.returncode == 0 else 0


def _called(command: list[str]) -> str:
    """Return what a command of Slurm prints.

    Raises:
        UserFacingError: it is missing or fails.
    """
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        raise UserFacingError(
            f"`{command[0]}` is missing: start the sweep where Slurm is installed, or look at the "
            "scripts with --print"
        ) from None
    if found.returncode:
        raise UserFacingError(f"{command[0]} failed: {' '.join(found.stderr.split())[:300]}")
    return found.stdout
