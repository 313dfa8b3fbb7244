"""Measure `compare` of many groups with long curves, from interpreter start to exit.

    python benchmarks/compare.py [--home HOME] [--groups 50 --seeds 20 --points 1000000]

Without a home that has the runs already, they are written first, which takes some ten minutes and
about 2 GB for the default sizes. The bar is 3 s for 50 groups x 20 seeds x 1,000,000 points; with
other sizes the table says so. The values are whole numbers, as returns of many tasks are.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from group_homes import METRIC, write_group
from rich.console import Console
from rich.table import Table

from runshelf.store.home import has_runs

BAR_SECONDS = 3.0
WHOLE = (50, 20, 1_000_000)
ENV = "Benchmark-v0"


def main() -> None:
    """Write the runs if there are none, and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--groups", type=int, default=WHOLE[0])
    parser.add_argument("--seeds", type=int, default=WHOLE[1])
    parser.add_argument("--points", type=int, default=WHOLE[2])
    parser.add_argument("--pairs", type=int, default=5, help="repetitions")
    options = parser.parse_args()
    sizes = options.groups, options.seeds, options.points
    if options.home:
        measure(options.home, sizes, options.pairs)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), sizes, options.pairs)


def measure(home: Path, sizes: tuple[int, int, int], repetitions: int) -> None:
    """Print what a comparison takes: the first, which reads the runs into the index, and others."""
    if not has_runs(home):
        write(home, sizes)
    table = Table(title="compare: seconds of the whole command")
    for name in ("what", "seconds", "range", "bar", "ratio", "met"):
        table.add_column(name)
    first = seconds(home, sizes, [])
    table.add_row("the first, with a new index", f"{first:.2f}", "", "", "", "")
    kinds = {"text": [], "--json": ["--json"], "--html": ["--html", str(home / "compare.html")]}
    for name, options in kinds.items():
        times = [seconds(home, sizes, options) for _ in range(repetitions)]
        row = row_of(name, times, whole=sizes == WHOLE)
        table.add_row(*row)
    size = sum(path.stat().st_size for path in home.glob("runs/*/*"))
    text = f"{sizes[0]} groups x {sizes[1]} seeds x {sizes[2]:,} points, {size / 1e9:.2f} GB"
    Console().print(table, text)


def row_of(name: str, times: list[float], *, whole: bool) -> list[str]:
    """Return a row of the table."""
    middle = median(times)
    met = ("yes" if middle <= BAR_SECONDS else "no") if whole else "smaller than the bar's sizes"
    spread = f"{min(times):.2f} to {max(times):.2f}"
    return [name, f"{middle:.2f}", spread, f"{BAR_SECONDS:g}", f"{middle / BAR_SECONDS:.2f}", met]


def seconds(home: Path, sizes: tuple[int, int, int], options: list[str]) -> float:
    """Return the seconds of one command."""
    names = [name_of(number) for number in range(sizes[0])]
    argv = [sys.executable, "-m", "runshelf", "compare", *names, "--home", str(home), *options]
    began = time.perf_counter()
    done = subprocess.run(
        [*argv, "--metric", METRIC], capture_output=True, check=False, env=dict(os.environ)
    )
    took = time.perf_counter() - began
    assert done.returncode == 0, done.stderr.decode()
    return took


def write(home: Path, sizes: tuple[int, int, int]) -> None:
    """Write the runs; say how far it is on stderr."""
    groups, seeds, points = sizes
    began = time.perf_counter()
    for number in range(groups):
        rng = np.random.default_rng(number)
        level = 200.0 + 5.0 * number

        def curve(
            _: int, seed: int, rng: np.random.Generator = rng, level: float = level
        ) -> np.ndarray:
            rise = level * (1 - np.exp(-np.linspace(0, 8, points)))
            return np.round(rise + 10 * np.sin(seed) + 20 * rng.normal(size=points))

        write_group(home, name_of(number), ENV, range(seeds), curve, every=10)
        took = time.perf_counter() - began
        left = {"groups": number + 1, "of": groups, "seconds": round(took)}
        print(json.dumps(left), file=sys.stderr)


def name_of(number: int) -> str:
    """Return the name of a group."""
    return f"algorithm{number:02d} group"


if __name__ == "__main__":
    main()
