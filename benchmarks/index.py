"""Measure the index: the time to build it, to update it, and to answer queries.

    python benchmarks/index.py [HOME] [--runs 10000 --metrics 100]

Without HOME, `many_runs.py` creates one in a temporary folder, which takes some minutes. Every
query runs several times; the table gives the first time and the slowest of the others. The bars are
those of the pages, which include the time of the index.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runshelf.index.run_index import Index, open_index

ROOT = Path(__file__).parents[1]
METRIC, OTHER = "train/metric_0", "eval/metric_1"
COLUMNS = ("lr", "optimiser.name", METRIC, OTHER, "env", "seed")
QUESTIONS: dict[str, Callable[[Index], object]] = {
    "first page": lambda index: index.runs(),
    "first page, six columns": lambda index: index.runs(columns=COLUMNS),
    "last page": lambda index: index.runs(offset=9_900),
    "sort by a metric": lambda index: index.runs(sort=f"-{METRIC}", columns=COLUMNS),
    "sort by three keys": lambda index: index.runs(sort=f"lr,-{METRIC},name"),
    "filter by a setting": lambda index: index.runs("lr=0.001"),
    "filter by a metric": lambda index: index.runs(f"{METRIC}>1"),
    "filter by text": lambda index: index.runs("question~rate"),
    "filter by a word": lambda index: index.runs("ppo"),
    "filter by a tag": lambda index: index.runs("tag=keep"),
    "filter by a seed": lambda index: index.runs("seed=3"),
    "seven filters, sorted": lambda index: index.runs(
        f"state=finished lr<0.01 {METRIC}>0 {OTHER}>0 optimiser.name=adam -tag=broken ppo",
        sort=f"-{OTHER}.max",
        columns=COLUMNS,
    ),
    "groups, four columns": lambda index: index.groups(columns=COLUMNS[:4]),
    "groups, filtered and sorted": lambda index: index.groups(
        "lr=0.001", sort=f"-{METRIC}", columns=COLUMNS[:4]
    ),
    "what can be filtered by": lambda index: index.keys(),
}


def main() -> None:
    """Measure a home, given or created."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("home", nargs="?", type=Path)
    parser.add_argument("--runs", default="10000")
    parser.add_argument("--metrics", default="100")
    options = parser.parse_args()
    if options.home:
        measure(options.home)
        return
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(ROOT / "benchmarks" / "many_runs.py"), folder]
        arguments = ["--runs", options.runs, "--metrics", options.metrics, "--long", "20x10000"]
        subprocess.run([*program, *arguments], check=True)
        measure(Path(folder))


def measure(home: Path) -> None:
    """Measure a home and print a table."""
    with open_index(home) as index:
        seconds, _ = timed(lambda: index.rebuild())
        runs = index.runs(limit=0).total
        again = min(timed(lambda: index.refresh())[0] for _ in range(5))
        print(f"| {runs:,} runs | first | others at most |\n|---|---|---|")
        print(f"| build | {seconds:.1f} s | |\n| bring up to date | {again * 1e3:.0f} ms | |")
        for name, ask in QUESTIONS.items():
            first, *others = (timed(lambda ask=ask: ask(index))[0] for _ in range(6))
            print(f"| {name} | {first * 1e3:.0f} ms | {max(others) * 1e3:.0f} ms |")
        size = index.path.stat().st_size if index.path else 0
        print(f"| size | {size / 1e6:.0f} MB | |")


def timed(act: Callable[[], object]) -> tuple[float, object]:
    """Return how many seconds `act` took, and its result."""
    began = time.perf_counter()
    result = act()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
