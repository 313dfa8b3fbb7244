"""Train every healthy and every faulty run of the benchmark, and keep the logs.

    python benchmarks/faults/collect.py [GLOB ...] [--part 0/2]

Each run is a process with ten seeds; a log that exists is not made again. `--part` takes every
n-th run, so that several cores can share the work.
"""

import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

from cases import (
    CALIBRATION,
    HELD_OUT_HEALTHY,
    REFERENCE,
    TAUGHT,
    TAUGHT_CALIBRATION,
    faulty,
    faulty_teaching,
)
from store import FOLDER

HERE = Path(__file__).parent
LONGEST = 1_800  # seconds of one run


def names() -> list[str]:
    """Return the names of all runs: the cheap ones of all kinds first."""
    healthy = [f"calibration-{at:02}" for at in range(len(CALIBRATION))]
    held_out = [f"healthy-{at:02}" for at in range(len(HELD_OUT_HEALTHY))]
    reference = [f"reference-{at:02}" for at in range(len(REFERENCE))]
    taught = [f"taughtcalibration-{at:02}" for at in range(len(TAUGHT_CALIBRATION))]
    taught += [f"taught-{at:02}" for at in range(len(TAUGHT))]
    broken = [f"{fault.name}@{case.name}" for fault, case in (*faulty(), *faulty_teaching())]
    return [*healthy, *held_out, *reference, *taught, *broken]


def main() -> int:
    """Make the logs that are missing, and return how many failed."""
    arguments = sys.argv[1:]
    part, parts = 0, 1
    if "--part" in arguments:
        at = arguments.index("--part")
        part, parts = map(int, arguments[at + 1].split("/"))
        del arguments[at : at + 2]
    globs = arguments or ["*"]
    chosen = [name for name in names() if any(fnmatch(name, glob) for glob in globs)]
    failed = 0
    for number, name in enumerate(chosen):
        path = FOLDER / f"{name.replace('/', '_')}.npz"
        if number % parts != part or path.exists():
            continue
        start = time.monotonic()
        command = [sys.executable, str(HERE / "run_one.py"), name, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
            status, last = done.returncode, (done.stderr.strip().splitlines() or [""])[-1]
        except subprocess.TimeoutExpired:
            status, last = 1, f"longer than {LONGEST} s"
        failed += status != 0
        print(f"{time.monotonic() - start:6.0f} s  {name}  {last if status else ''}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
