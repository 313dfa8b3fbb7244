"""Fill a home with finished runs, to measure code that reads many runs.

    python benchmarks/many_runs.py HOME --runs 10000 --metrics 100 --points 20 --long 20x10000

The folders are what `create_run` and the loggers leave behind, written directly: without waiting
for a disk at every step 10,000 take about a minute. The same arguments make the same runs, but for
when they were made. Prints one JSON line.
"""

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from runshelf.store.compacting import compact

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ENVS = ("CartPole-v1", "Pendulum-v1", "Hopper-v5", "Walker2d-v5", "ALE/Pong-v5", "dot")
ALGORITHMS = ("ppo", "sac", "dqn")
TAGS = ("baseline", "ablation", "keep", "paper", "broken")
QUESTIONS = (
    "does the learning rate matter?",
    "is a wider network worth it?",
    "why is the KL high?",
)
PARTS = ("train", "eval", "system", "reward_model")
SEEDS_OF_A_GROUP = 5
SECONDS_BETWEEN = 3000
LONG_METRICS = 4


class Wanted(NamedTuple):
    """One run to be written."""

    number: int
    metrics: int
    points: int
    group: str
    seed: int
    created: float


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--metrics", type=int, default=100, help="of each run")
    parser.add_argument("--points", type=int, default=20, help="of each metric")
    parser.add_argument("--long", default="", help="also a group `long`: 20x10000, RUNSxPOINTS")
    parser.add_argument("--jsonl", action="store_true", help="leave the metrics as they are logged")
    options = parser.parse_args()
    began = time.perf_counter()
    write_runs(options.home, wanted(options), compacts=not options.jsonl)
    print(json.dumps({"home": str(options.home), "seconds": time.perf_counter() - began}))


def wanted(options: argparse.Namespace) -> list[Wanted]:
    """Return the runs to write, oldest first."""
    count, points = (int(part) for part in (options.long or "0x0").split("x"))
    newest = time.time() - SECONDS_BETWEEN
    oldest = newest - SECONDS_BETWEEN * (options.runs + count)
    runs = [
        Wanted(n, options.metrics, options.points, "", n % SEEDS_OF_A_GROUP, 0.0)
        for n in range(options.runs)
    ]
    metrics = min(LONG_METRICS, options.metrics)
    runs += [Wanted(options.runs + n, metrics, points, "long", n, 0.0) for n in range(count)]
    return [run._replace(created=oldest + SECONDS_BETWEEN * run.number) for run in runs]


def write_runs(home: Path, runs: Sequence[Wanted], *, compacts: bool) -> None:
    """Write run folders, with two processes if there are many."""
    (home / "runs").mkdir(parents=True, exist_ok=True)
    parts = [(home, runs[first : first + 100], compacts) for first in range(0, len(runs), 100)]
    if len(parts) == 1:
        write_part(parts[0])
        return
    with ProcessPoolExecutor(2) as pool:
        for _ in pool.map(write_part, parts):
            pass


def write_part(part: tuple[Path, Sequence[Wanted], bool]) -> None:
    """Write some runs."""
    home, runs, compacts = part
    for run in runs:
        folder = write_run(home, run)
        if compacts:
            compact(folder)


def write_run(home: Path, run: Wanted) -> Path:
    """Write one run's folder, the manifest last."""
    chance = random.Random(run.number // SEEDS_OF_A_GROUP if not run.group else "long")
    config = configuration(chance)
    env, algorithm = chance.choice(ENVS), chance.choice(ALGORITHMS)
    tags = chance.sample(TAGS, chance.randrange(3))
    question = chance.choice(QUESTIONS)
    chance = random.Random(run.number)
    ulid = ulid_of(run.created, chance)
    folder = home / "runs" / ulid
    folder.mkdir()
    seconds = chance.uniform(60, 20_000)
    (folder / "lock").write_text("1")
    (folder / "events.jsonl").write_text("".join(events(run.created, seconds, chance)))
    with (folder / "metrics-log-1.jsonl").open("w") as file:
        file.writelines(records(run, seconds, chance))
    asked = {"group": run.group, "question": question, "tags": tags}
    manifest = {
        "schema": 1,
        "ulid": ulid,
        "created": iso(run.created),
        "command": "run",
        "argv": ["python", "train.py", f"--lr={config['lr']}", f"--seed={run.seed}"],
        "cwd": "/home/somebody/project",
        "env": env,
        "algorithm": algorithm,
        "seeds": [run.seed],
        "config": config | {"seed": run.seed},
        "versions": {"python": "3.11.2", "platform": "Linux", "numpy": "2.4.0"},
        "hardware": {"cpu": "Z80", "cores": 8, "memory_bytes": 2**35, "gpus": []},
        "git": {"commit": f"{chance.getrandbits(160):040x}", "dirty": True, "branch": "main"},
        "python": {"version": "3.11.2", "packages": {f"package-{n}": "1.2.3" for n in range(80)}},
        "cost_per_hour": 1.2,
        **{name: value for name, value in asked.items() if value},
    }
    (folder / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return folder


def configuration(chance: random.Random) -> dict[str, Any]:
    """Return a typical configuration: nested, 20 keys."""
    return {
        "lr": chance.choice([1e-4, 3e-4, 1e-3, 3e-3]),
        "batch_size": chance.choice([32, 64, 256]),
        "hidden": [64, 64],
        "optimiser": {"name": chance.choice(["adam", "sgd"]), "beta1": 0.9, "beta2": 0.999},
        "normalise": chance.random() < 0.5,
        "notes": "",
        **{f"setting_{n}": chance.randrange(4) for n in range(12)},
    }


def events(created: float, seconds: float, chance: random.Random) -> Iterator[str]:
    """Yield the lines of `events.jsonl`: one run in a hundred has none at the end (lost)."""
    yield json.dumps({"status": "started", "time": iso(created)}) + "\n"
    status = chance.choices(
        ["finished", "failed", "interrupted", "stopped", ""], [90, 5, 2, 2, 1], k=1
    )[0]
    if status:
        end = {"status": status, "time": iso(created + seconds), "seconds": round(seconds, 3)}
        yield json.dumps(end | ({"exit_status": 1} if status == "failed" else {})) + "\n"


def records(run: Wanted, seconds: float, chance: random.Random) -> Iterator[str]:
    """Yield the lines of a metrics file: noisy curves that converge."""
    names = [f"{PARTS[n % len(PARTS)]}/metric_{n}" for n in range(run.metrics)]
    heights = [chance.uniform(-1, 3) for _ in names]
    for point in range(run.points):
        share = (point + 1) / run.points
        axes = {
            "step": point,
            "env_steps": point * 512,
            "seconds": round(seconds * share, 3),
            "time": round(run.created + seconds * share, 3),
        }
        level = 1 - math.exp(-3 * share)
        values = {
            name: height * level + chance.gauss(0, 0.1)
            for name, height in zip(names, heights, strict=True)
        }
        yield json.dumps(axes | values) + "\n"


def ulid_of(created: float, chance: random.Random) -> str:
    """Return a run's id for a time."""
    number = (int(created * 1000) << 80) | chance.getrandbits(80)
    return "".join(CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def iso(seconds: float) -> str:
    """Return a time as manifests have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    os.umask(0o022)
    main()
