"""Train every run of Stable-Baselines3 and of CleanRL, and keep the logs that they write.

    python benchmarks/faults/collect_peers.py [GLOB ...] [--cleanrl FOLDER]

The environments of `benchmarks/peers/install.py` run them: `sb3`, and `cleanrl` with a checkout of
CleanRL in FOLDER. Each run is a process, a seed after the other, and a log that exists is not made
again. Our reader reads the files as `backflip doctor FOLDER` does.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from peers import cleanrl_faults, sb3_faults
from store import FOLDER, save_logs

from backflip.doctor.log import Log
from backflip.doctor.reading.log_files import logs_in

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
SOURCES = [str(ROOT / "packages" / name / "src") for name in ("backflip", "runshelf")]
LATE = 0.8  # of the budget
LONGEST = 5_400  # seconds of one run


def kept_as(name: str, kind: str) -> Path:
    """Return the file of the logs of a run: of kind `files`, `monitored` or `callback`."""
    return FOLDER / "peers" / f"{name}.{kind}.npz"


def train(library: str, name: str, *more: str) -> None:
    """Train all seeds of a run, and keep their logs.

    Raises:
        RuntimeError: the training run failed; says its last line.
    """
    python = ROOT / ".cache" / "peers" / library / "bin" / "python"
    program = HERE / "peers" / f"{library}_train.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), str(program), name, folder, *more]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LONGEST)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["it failed"])[-1])
        keep(Path(folder), name)


def keep(folder: Path, name: str) -> None:
    """Read what a run wrote into a folder, as the doctor reads it, and keep the logs.

    The return of a seed is the mean of the episodes that ended in the last fifth of the budget:
    Stable-Baselines3's runs count it, and CleanRL's log every episode.
    """
    seeds = sorted(int(path.name.removeprefix("seed_")) for path in folder.glob("seed_*"))
    files = {seed: _only(folder / f"seed_{seed}", seed) for seed in seeds}
    counted = folder / "returns.json"
    returns = (
        json.loads(counted.read_text("utf-8")) if counted.exists() else map(late, files.values())
    )
    returns = list(returns)
    monitors = {seed: folder / f"monitored_{seed}" for seed in seeds}
    if all(path.exists() for path in monitors.values()):
        logs = {seed: _only(path, seed) for seed, path in monitors.items()}
        save_logs(kept_as(name, "monitored"), logs, returns)
    doctors = {seed: folder / f"doctor_{seed}.csv" for seed in seeds}
    if all(path.exists() for path in doctors.values()):
        logs = {seed: _only(path, seed) for seed, path in doctors.items()}
        save_logs(kept_as(name, "callback"), logs, returns)
    save_logs(kept_as(name, "files"), files, returns)  # the last: with it, a run is complete


def late(log: Log) -> float:
    """Return the mean return of the episodes in the last fifth of the budget; NaN without any."""
    if not log.has("episode_return_mean"):
        return math.nan
    found = log.signals["episode_return_mean"]
    chosen = found.y[found.x >= LATE * log.budget]
    return float(np.mean(chosen)) if len(chosen) else math.nan


def _only(path: Path, seed: int) -> Log:
    (log,) = logs_in(path, {})
    return replace(log, seed=seed)


def main() -> int:
    """Make the logs that are missing, and return how many failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("globs", nargs="*", default=["*"])
    parser.add_argument(
        "--cleanrl", type=Path, help="a checkout; without it, its runs are left out"
    )
    arguments = parser.parse_args()
    runs = [("sb3", name, ()) for name in sb3_faults.names()]
    if arguments.cleanrl:
        more = ("--cleanrl", str(arguments.cleanrl.absolute()))
        runs += [("cleanrl", name, more) for name in cleanrl_faults.names()]
    failed = 0
    for library, name, more in runs:
        chosen = any(fnmatch(name, glob) for glob in arguments.globs)
        if not chosen or kept_as(name, "files").exists():
            continue
        start, said = time.monotonic(), ""
        try:
            train(library, name, *more)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed, said = failed + 1, str(error)
        print(f"{time.monotonic() - start:6.0f} s  {name}  {said}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
