"""Seeds of PPO on CartPole as a sweep of 20 blocks, against the same seeds in one program.

    python benchmarks/sweeps/cost_of_blocks.py [--seeds 1000] [--env-steps 10240] [--repeats 2]

Both are measured in turn, with the same compilation cache, and their cost is CPU time: seconds of
all processes together, which other jobs on the machine disturb less than the clock. The time by the
clock is printed, too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCKS = 20


def measured(command: list[str], home: Path) -> dict[str, float]:
    """Run a command line; return its CPU time, with all its children, and its time by the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([*command, "--home", str(home)], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": round(cpu, 1), "clock": round(time.monotonic() - began, 1)}


def main(seeds: int, env_steps: int, repeats: int) -> dict[str, object]:
    """Measure both in turn; return the figures and their ratios."""
    backflip = [sys.executable, "-m", "backflip"]
    task = ["ppo", "CartPole-v1", "--env-steps", str(env_steps), "--seeds", str(seeds)]
    setting = "learning_rate=0.001"
    one = [*backflip, "train", *task, "--seed", "1000000", "--set", setting]
    blocks = [
        *(*backflip, "sweep", "train", *task, "--over", setting),
        *("--block-seeds", str(seeds // BLOCKS), "--workers", "2"),
    ]
    found: dict[str, list[dict[str, float]]] = {"one program": [], "20 blocks": []}
    with tempfile.TemporaryDirectory() as place:
        for repeat in range(repeats):
            found["one program"].append(measured(one, Path(place) / f"one{repeat}"))
            found["20 blocks"].append(measured(blocks, Path(place) / f"blocks{repeat}"))
    ratios = {
        unit: round(
            sum(x[unit] for x in found["20 blocks"]) / sum(x[unit] for x in found["one program"]),
            2,
        )
        for unit in ("cpu", "clock")
    }
    about = {"seeds": seeds, "env steps": env_steps, "load": round(os.getloadavg()[0], 1)}
    return about | found | {"ratio": ratios}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--env-steps", type=int, default=10240)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    print(json.dumps(main(given.seeds, given.env_steps, given.repeats), indent=1))
