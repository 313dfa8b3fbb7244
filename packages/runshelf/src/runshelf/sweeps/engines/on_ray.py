"""The engine `ray` (extra `ray`): workers are tasks of a Ray cluster.

A task only runs the command line of a worker, so nothing but words travels through Ray. Results are
in the sweep's folder, which every node must reach. If a node dies, its tasks end without a result,
and the driver starts others, which take the blocks over.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from runshelf.environment import exported, variable
from runshelf.errors import UsageError, UserFacingError
from runshelf.sweeps.engines.interface import WorkerEnd, worker_command
from runshelf.sweeps.worker import DRIVER

_OPTIONS = {"address": "auto", "cpus": "1", "gpus": "1", "memory": "4e9"}
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.5


@final
class Ray:
    """Workers as tasks of a Ray cluster.

    Args:
        folder: the folder of the sweep.
        options: `address` of an existing cluster, by default that of RAY_ADDRESS, else one that
            runs on this machine, else a new one; `cpus`, `gpus` and `memory` in bytes of each
            block.

    Raises:
        UsageError: Ray is not installed, or an option is invalid.
        UserFacingError: there is no such cluster.
    """

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._ray = _imported()
        self._command = worker_command(folder)
        resources = _resources(options)
        self._start_cluster(options.get("address"))
        self._task = self._ray.remote(max_retries=0, **resources)(_work)
        self._tasks: list[Any] = []

    def start(self, workers: int) -> None:
        """Start more tasks; each waits until the cluster has a place for it."""
        home = variable("HOME")
        environ = exported({"HOME": home}) if home else {}
        self._tasks += [self._task.remote(self._command, environ) for _ in range(workers)]

    def alive(self) -> int:
        """Return how many tasks run or wait."""
        if not self._tasks:
            return 0
        return len(self._ray.wait(self._tasks, num_returns=len(self._tasks), timeout=0)[1])

    def ended(self) -> list[WorkerEnd]:
        """Return the ends of tasks that were not returned before."""
        if not self._tasks:
            return []
        over, self._tasks = self._ray.wait(self._tasks, num_returns=len(self._tasks), timeout=0)
        return [self._end_of(task) for task in over]

    def stop(self) -> None:
        """Cancel all tasks, which give their blocks up, and wait for their ends."""
        for task in self._tasks:
            self._ray.cancel(task, force=False)
        if self._tasks:
            count = len(self._tasks)
            self._ray.wait(self._tasks, num_returns=count, timeout=_STOP_SECONDS)

    def _end_of(self, task: Any) -> WorkerEnd:
        try:
            status, said = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            return WorkerEnd(None, f"lost in the cluster ({type(error).__name__})")
        return WorkerEnd(status, said)

    def _start_cluster(self, address: str | None) -> None:
        if self._ray.is_initialized():
            return
        address = address or os.environ.get("RAY_ADDRESS") or None
        try:
            self._ray.init(address=address, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserFacingError(
                f"cannot reach a Ray cluster at `{address or 'this machine'}`: "
                f"{' '.join(str(error).split())[:200]}"
            ) from error


def _imported() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    try:
        import ray  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError:
        raise UsageError(
            'Ray is not installed; type pip install "runshelf[ray]", or leave --engine out'
        ) from None
    return ray


def _resources(options: Mapping[str, str]) -> dict[str, float]:
    """Return the resources of a task.

    Raises:
        UsageError: an option is unknown, or is not a number.
    """
    resources: dict[str, float] = {"num_cpus": 1.0}
    for key, text in options.items():
        if key not in _OPTIONS:
            raise UsageError(
                f"the engine `ray` has no option `{key}` (it has: {', '.join(_OPTIONS)})"
            )
        if key == "address":
            continue
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e15:
            raise UsageError(f"`{key}` must be a number, got `{text}`; try {key}={_OPTIONS[key]}")
        resources[key if key == "memory" else f"num_{key}"] = value
    return resources


def _work(command: list[str], environ: dict[str, str]) -> tuple[int, str]:
    """Run a worker on a node of the cluster; return its exit status and its last line."""
    # The worker ends after its present block if this process of the cluster is gone.
    environ = {**os.environ, **environ, **exported({DRIVER: str(os.getpid())})}
    worker = subprocess.Popen(
        [sys.executable, *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environ,
        start_new_session=True,
    )
    said = None
    try:
        while said is None:
            # A cancellation is raised between two instructions: it interrupts no long wait.
            with suppress(subprocess.TimeoutExpired):
                said = worker.communicate(timeout=_LOOK_SECONDS)[1]
    except BaseException:  # the task is cancelled: the worker gives its block up
        with suppress(ProcessLookupError):
            worker.send_signal(signal.SIGTERM)
        worker.communicate()
        raise
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return worker.returncode, lines[-1] if lines else ""
