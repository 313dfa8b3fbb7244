"""1,000 seeds in 20 blocks on a Ray cluster of 4 local nodes: one is killed, and the driver once.

    python benchmarks/sweeps/ray_nodes.py [--env-steps N] [--seeds N] [--block-seeds N]

Needs the extra `ray`. A node is killed as a machine that loses its power: Ray's processes and
everything that they started get SIGKILL. Checks that every block is done once, and that the returns
are those of the same sweep with the engine `processes` and no faults.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from ray.cluster_utils import Cluster


def main(env_steps: int, seeds: int, block_seeds: int) -> dict[str, Any]:
    """Run the sweep with and without faults; return what was found."""
    with tempfile.TemporaryDirectory() as place:
        calm = sweep(Path(place) / "calm", env_steps, seeds, block_seeds, "processes", "2")
        alone = json.loads(subprocess.run(calm, capture_output=True, check=True).stdout)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        nodes = [cluster.add_node(num_cpus=1) for _ in range(4)]
        began = time.monotonic()
        command = sweep(
            Path(place) / "faults",
            env_steps,
            seeds,
            block_seeds,
            "ray",
            "4",
            "--engine-set",
            f"address={cluster.address}",
        )
        driver = subprocess.Popen(command, stdout=subprocess.PIPE)
        wait_for_results(Path(place) / "faults", 2)
        kill_node(nodes[0])
        wait_for_results(Path(place) / "faults", 5)
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        ended = subprocess.run(command, capture_output=True, check=True)
        faults = json.loads(ended.stdout)
        seconds = time.monotonic() - began
        cluster.shutdown()
        return {
            "blocks": faults["blocks"],
            "blocks done once": done_once(Path(place) / "faults"),
            "returns equal": scores(alone) == scores(faults),
            "seeds": len(scores(faults)),
            "seconds with faults": round(seconds, 1),
        }


def sweep(
    home: Path, env_steps: int, seeds: int, block_seeds: int, engine: str, workers: str, *more: str
) -> list[str]:
    """Return the command line of the sweep."""
    return [
        *(sys.executable, "-m", "backflip", "sweep", "train", "ppo", "CartPole-v1", "--json"),
        *("--over", "learning_rate=0.001", "--seeds", str(seeds), "--name", "nodes"),
        *("--block-seeds", str(block_seeds), "--env-steps", str(env_steps)),
        *("--home", str(home), "--engine", engine, "--workers", workers, *more),
    ]


def wait_for_results(home: Path, many: int) -> None:
    """Wait until so many blocks are done."""
    while len(list(home.glob("runs/.runshelf/sweeps/nodes/blocks/*.done"))) < many:
        time.sleep(0.2)


def kill_node(node: Any) -> None:
    """Kill a node's processes, and all that they started, at once."""
    below: list[psutil.Process] = []
    for kinds in node.all_processes.values():
        for info in kinds:
            one = psutil.Process(info.process.pid)
            below += [*one.children(recursive=True), one]
    for process in below:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def done_once(home: Path) -> bool:
    """Return whether each block has one finished run."""
    finished = Counter(
        json.loads(path.read_text())["sweep"]["block"]
        for path in home.glob("runs/*/run.json")
        if '"finished"' in path.with_name("events.jsonl").read_text()
    )
    blocks = {path.stem for path in home.glob("runs/.runshelf/sweeps/nodes/blocks/*.done")}
    return set(finished) == blocks and set(finished.values()) == {1}


def scores(fields: dict[str, Any]) -> dict[str, float]:
    """Return the scores of all seeds."""
    return fields["configurations"][0]["scores"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--env-steps", type=int, default=2048)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--block-seeds", type=int, default=50)
    given = parser.parse_args()
    print(json.dumps(main(given.env_steps, given.seeds, given.block_seeds), indent=1))
