"""200 runs of a foreign program as a sweep, with 3 kill -9 of workers.

    python benchmarks/sweeps/killed_workers.py [--program sb3|q_learning]

`sb3` needs `python benchmarks/peers/install.py sb3`. Checks that every block has one result and one
finished run, and that the scores are those of the program run alone.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

HERE = Path(__file__).parent
SB3 = HERE.parents[1] / ".cache" / "peers" / "sb3" / "bin" / "python"
PROGRAMS = {
    "sb3": [str(SB3), str(HERE / "sb3_program.py")],
    "q_learning": [sys.executable, str(HERE / "foreign_program.py")],
}
KILLS = 3
CONFIGURATIONS, SEEDS = 4, 50


def main(folder: Path, program: str) -> dict[str, object]:
    """Run the sweep with kills; return what was found."""
    began = time.monotonic()
    command = [
        *(sys.executable, "-m", "runshelf", "sweep", "killed", "--home", str(folder), "--json"),
        *("--over", "rate=0.05,0.1,0.3,0.8", "--seeds", str(SEEDS), "--metric", "score"),
        *("--workers", "2", "--", *PROGRAMS[program]),
        *("--rate", "{rate}", "--seed", "{seed}"),
    ]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE)
    killed = kill_workers(driver)
    assert driver.stdout is not None
    fields = json.loads(driver.stdout.read())
    runs = [json.loads(path.read_text()) for path in (folder / "runs").glob("*/run.json")]
    finished = Counter(
        run["sweep"]["block"] for run in runs if has_finished(folder / "runs" / run["run"])
    )
    begun = Counter(run["sweep"]["block"] for run in runs)
    return {
        "blocks": fields["blocks"],
        "workers killed": killed,
        "blocks with more or less than one finished run": sum(n != 1 for n in finished.values())
        + (CONFIGURATIONS * SEEDS - len(finished)),
        "runs begun again after a kill": sum(n - 1 for n in begun.values()),
        "scores that differ from the program alone": compare(fields, program),
        "seconds": round(time.monotonic() - began, 1),
    }


def kill_workers(driver: "subprocess.Popen[bytes]") -> int:
    """Kill workers at three moments, each with SIGKILL; return how many were killed."""
    rng, killed = random.Random(0), 0
    while driver.poll() is None and killed < KILLS:
        time.sleep(rng.uniform(10, 40))
        workers = [child for child in psutil.Process(driver.pid).children() if is_worker(child)]
        if workers:
            os.kill(rng.choice(workers).pid, signal.SIGKILL)
            killed += 1
    return killed


def is_worker(process: psutil.Process) -> bool:
    """Return whether a process is a worker of a sweep."""
    try:
        return "--work" in process.cmdline()
    except psutil.Error:
        return False


def has_finished(folder: Path) -> bool:
    """Return whether the events of a run have its end."""
    return '"finished"' in (folder / "events.jsonl").read_text()


def compare(fields: dict[str, object], program: str) -> int:
    """Return how many of eight scores differ from those of the program run alone."""
    different = 0
    configurations = fields["configurations"]
    assert isinstance(configurations, list)
    for one in configurations:
        for seed in (1_000_000, 1_000_049):
            rate = str(one["values"]["rate"])
            alone = [*PROGRAMS[program], "--rate", rate, "--seed", str(seed)]
            said = subprocess.run(alone, capture_output=True, text=True, check=True).stdout
            different += float(said.partition("=")[2]) != one["scores"][str(seed)]
    return different


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", choices=PROGRAMS, default="sb3")
    chosen = parser.parse_args().program
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps({"program": chosen} | main(Path(place), chosen), indent=1))
