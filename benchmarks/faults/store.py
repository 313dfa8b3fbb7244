"""The logs of the benchmark: one file per run, with the signals of all its seeds."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.log import Log, Signal
from backflip.doctor.reading.from_settings import with_settings
from backflip.doctor.reading.own_runs import logs_of_run
from runshelf.store.run import open_run

FOLDER = Path(__file__).parents[2] / ".cache" / "faults"
LEFT_OUT = ("time", "disk_free_bytes", "processes", "seconds", "memory_bytes")


def save(path: Path, run: Path, returns: Sequence[float]) -> None:
    """Write the logs of a run of ours, with the final return of each seed."""
    logs = {log.seed: log for log in logs_of_run(open_run(run)) if log.seed is not None}
    save_logs(path, logs, returns)


def save_logs(path: Path, logs: Mapping[int, Log], returns: Sequence[float]) -> None:
    """Write the log of each seed, with the final returns."""
    arrays: dict[str, Any] = {"returns": np.asarray(returns, np.float32)}
    for seed, log in logs.items():
        arrays[f"{seed}:facts"] = np.asarray(json.dumps(_facts(log)))
        for name, signal in log.signals.items():
            if name not in LEFT_OUT:
                arrays[f"{seed}:{name}:x"] = signal.x.astype(np.float32)
                arrays[f"{seed}:{name}:y"] = signal.y.astype(np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)
    unfinished.replace(path)  # a killed process leaves no half of a log


def _facts(log: Log) -> dict[str, Any]:
    planned = log.planned if math.isfinite(log.planned) else None
    about = {"algorithm": log.algorithm, "env": log.env, "planned": planned}
    return {**about, "library": log.library, "settings": dict(log.settings)}


def load(path: Path) -> tuple[list[Log], "np.ndarray[Any, Any]"]:
    """Return the log of each seed, and the final returns."""
    with np.load(path, allow_pickle=False) as arrays:
        returns = np.asarray(arrays["returns"], np.float64)
        signals: dict[int, dict[str, Signal]] = {}
        facts: dict[int, dict[str, Any]] = {}
        for key in arrays.files:
            seed, _, rest = key.partition(":")
            if rest == "facts":
                facts[int(seed)] = json.loads(str(arrays[key]))
            elif rest.endswith(":x"):
                name = rest[:-2]
                x = np.asarray(arrays[key], np.float64)
                y = np.asarray(arrays[f"{seed}:{name}:y"], np.float64)
                signals.setdefault(int(seed), {})[name] = Signal(x, y, name)
        # Older files hold one text about all their seeds.
        shared = json.loads(str(arrays["facts"])) if "facts" in arrays.files else {}
    seeds = sorted({*signals, *facts})
    return [
        _log(path.stem, seed, facts.get(seed, shared), signals.get(seed, {})) for seed in seeds
    ], returns


def _log(name: str, seed: int, facts: Mapping[str, Any], signals: Mapping[str, Signal]) -> Log:
    about = {key: facts[key] for key in ("algorithm", "env", "settings")}
    planned, library = float(facts["planned"] or math.nan), facts.get("library", "backflip")
    log = Log(f"{name}, seed {seed}", library, signals, planned=planned, seed=seed, **about)
    # Logs are kept as they were read; what follows from settings may be newer.
    return log if library == "backflip" else with_settings(log)
