"""The logs of the benchmark: one file per run, with the signals of all its seeds."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.log import Log, Signal
from backflip.doctor.reading.own_runs import logs_of_run
from runshelf.store.run import open_run

FOLDER = Path(__file__).parents[2] / ".cache" / "faults"
LEFT_OUT = ("time", "disk_free_bytes", "processes", "seconds", "memory_bytes")


def save(path: Path, run: Path, returns: "np.ndarray[Any, Any]") -> None:
    """Write the logs of a run, with the final return of each seed."""
    arrays: dict[str, Any] = {"returns": np.asarray(returns, np.float32)}
    facts: dict[str, Any] = {}
    for log in logs_of_run(open_run(run)):
        if log.seed is None:
            continue
        facts = {"algorithm": log.algorithm, "env": log.env, "planned": log.planned}
        facts["settings"] = dict(log.settings)
        for name, signal in log.signals.items():
            if name not in LEFT_OUT:
                arrays[f"{log.seed}:{name}:x"] = signal.x.astype(np.float32)
                arrays[f"{log.seed}:{name}:y"] = signal.y.astype(np.float32)
    arrays["facts"] = np.asarray(json.dumps(facts))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)
    unfinished.replace(path)  # a killed process leaves no half of a log


def load(path: Path) -> tuple[list[Log], "np.ndarray[Any, Any]"]:
    """Return the log of each seed, and the final returns."""
    with np.load(path, allow_pickle=False) as arrays:
        facts = json.loads(str(arrays["facts"]))
        returns = np.asarray(arrays["returns"], np.float64)
        signals: dict[int, dict[str, Signal]] = {}
        for key in arrays.files:
            seed, _, rest = key.partition(":")
            if rest.endswith(":x"):
                name = rest[:-2]
                x = np.asarray(arrays[key], np.float64)
                y = np.asarray(arrays[f"{seed}:{name}:y"], np.float64)
                signals.setdefault(int(seed), {})[name] = Signal(x, y, name)
    planned = float(facts["planned"] or math.nan)
    about = {key: facts[key] for key in ("algorithm", "env", "settings")}
    return [
        Log(f"{path.stem}, seed {seed}", "backflip", of, planned=planned, seed=seed, **about)
        for seed, of in sorted(signals.items())
    ], returns
