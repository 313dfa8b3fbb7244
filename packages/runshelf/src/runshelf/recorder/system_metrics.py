"""Records the CPU, memory, disk and GPU use of a program every few seconds, in a thread."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import psutil

from runshelf.errors import UserFacingError
from runshelf.snapshot.machine import query_gpus
from runshelf.steady_clock import SteadyClock
from runshelf.store.metrics import MetricsWriter

WRITER = "system"
_FIRST_SECONDS = 1.0
_EVERY_SECONDS = 10.0


@runtime_checkable
class Processes(Protocol):
    """The processes of a program."""

    def processes(self) -> list[psutil.Process]:
        """Return the processes that exist now."""
        ...


@final
class SystemMetrics:
    """Writes `metrics-system.jsonl` while a program runs."""

    def __init__(self, folder: Path, tree: Processes, before: float = 0.0) -> None:
        """Start the thread.

        Args:
            folder: the run's folder.
            tree: the processes of the program.
            before: seconds since the start of the run.
        """
        self._folder = folder
        self._tree = tree
        self._clock = SteadyClock()
        self._began = time.monotonic() - before
        self._cpu_seconds: dict[psutil.Process, float] = {}
        self._at = time.monotonic()
        self._has_gpus = True
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="system-metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        self._thread.join(timeout=1.0)  # a GPU driver may hang

    def _sample(self) -> None:
        with suppress(UserFacingError), MetricsWriter(self._folder, WRITER) as writer:
            wait = _FIRST_SECONDS
            while not self._stopped.wait(wait):
                with suppress(UserFacingError, OSError, psutil.Error):
                    writer.write(self._record())
                wait = _EVERY_SECONDS

    def _record(self) -> dict[str, Any]:
        processes = self._tree.processes()
        seconds = time.monotonic() - self._began
        record: dict[str, Any] = {"time": self._clock.now(), "seconds": seconds}
        record["cpu_percent"] = self._cpu_percent(processes)
        record["load_per_core"] = _load_per_core()
        record["cores"] = os.cpu_count() or 1
        record["memory_bytes"] = sum(_memory(process) for process in processes)
        record["processes"] = len(processes)
        record["disk_free_bytes"] = _disk_free(self._folder)
        return record | self._gpus()

    def _cpu_percent(self, processes: list[psutil.Process]) -> float:
        """Return the CPU use since the last record, in percent of one core."""
        used = {process: _cpu_seconds(process) for process in processes}
        more = sum(max(s - self._cpu_seconds.get(p, 0.0), 0.0) for p, s in used.items())
        now, before = time.monotonic(), self._at
        self._cpu_seconds, self._at = used, now
        return round(100.0 * more / max(now - before, 1e-3), 1)

    def _gpus(self) -> dict[str, float]:
        if not self._has_gpus:
            return {}
        rows = query_gpus(("utilization.gpu", "memory.used"))
        self._has_gpus = bool(rows)
        fields: dict[str, float] = {}
        for index, (utilisation, memory) in enumerate(rows):
            with suppress(ValueError):
                fields[f"gpu{index}/utilisation_percent"] = float(utilisation)
                fields[f"gpu{index}/memory_bytes"] = float(memory) * 2**20
        return fields


def _cpu_seconds(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        times = process.cpu_times()
        return times.user + times.system
    return 0.0


def _load_per_core() -> float:
    """Return how many threads ran or wanted to, mean over the last minute, for each core."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


def _memory(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return process.memory_info().rss
    return 0


def _disk_free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
