"""The cost of recording: a CPU-bound program that prints, alone and under `backflip run`.

    .venv/bin/python benchmarks/recorder.py [SECONDS] [PAIRS]

The program does a fixed amount of work, which takes SECONDS alone, and prints 1,000 lines per
second. Measured is the time from the first to the last line of work. The start of the recorder and
its snapshot come before and are printed apart. On a shared machine take many short pairs. Prints
the median ratio and the CPU time of the recorder.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

PROGRAM = """
import sys, time
lines, turns = int(sys.argv[1]), int(sys.argv[2])
begun = time.perf_counter()
for line in range(lines):
    x = 0
    for i in range(turns):
        x += i * i
    print(f"step {line} loss {x % 1000} and words to make it as long as others", flush=True)
wall = time.perf_counter() - begun
with open(sys.argv[3], "w") as file:
    file.write(f"{wall} {time.process_time()}")
"""
BACKFLIP = "import sys; from backflip.cli.main import main; sys.exit(main())"


class Measured(NamedTuple):
    """One run: seconds of work, of the whole command, and CPU seconds of the recorder."""

    work: float
    whole: float
    recorder: float


def measure(command: list[str], lines: int, turns: int, folder: Path) -> Measured:
    """Run the program once."""
    program, result = folder / "program.py", folder / "seconds"
    program.write_text(PROGRAM)
    arguments = [*command, sys.executable, program, lines, turns, result]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [str(word) for word in arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        cwd=folder,
    )
    whole = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    work, of_program = map(float, result.read_text().split())
    return Measured(work, whole, cpu - of_program)


def turns_per_millisecond(folder: Path) -> int:
    """Return how many turns of the program's loop take a millisecond."""
    return int(10_000 * 2.0 / measure([], 2000, 10_000, folder).work)


def main() -> None:
    """Measure alone and recorded in turn, and print a table."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    table = Table("pair", "alone, s", "recorded, s", "overhead", "start and end, s", "CPU of it, s")
    overheads: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        turns = turns_per_millisecond(folder)
        recorded = [sys.executable, "-c", BACKFLIP, "run", "--home", str(folder / "home"), "--"]
        for pair in range(pairs):
            alone = measure([], seconds * 1000, turns, folder)
            ours = measure(recorded, seconds * 1000, turns, folder)
            overheads.append(ours.work / alone.work - 1)
            figures = (alone.work, ours.work, ours.whole - ours.work, ours.recorder)
            cells = [f"{figure:.2f}" for figure in figures]
            table.add_row(str(pair + 1), *cells[:2], f"{overheads[-1]:+.2%}", *cells[2:])
    Console().print(table)
    print(f"median overhead {statistics.median(overheads):+.2%}; wanted: at most 2 %")


if __name__ == "__main__":
    main()
