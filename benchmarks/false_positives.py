"""Measure how often `compare` says that one of two equal groups is better.

    python benchmarks/false_positives.py [--pairs 2500] [--n 5] [--looks 5]

Both groups of a pair are drawn from the same distribution, each written as a real run of several
seeds through the store, and compared by the command line; the answer is read from its JSON. The bar
is a share of at most .05, for the fixed test and for the sequential one; A better and B better both
count. The seed of a pair is its number and that of its row.
"""

import argparse
import contextlib
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from group_homes import METRIC, write_run
from rich.console import Console
from rich.progress import track
from rich.table import Table

from runshelf.cli.main import main as runshelf
from runshelf.registrations.kept import register
from runshelf.registrations.registration import registration_of
from runshelf.statistics.proportions import wilson

BAR = 0.05
POINTS = 10
Draw = Callable[[np.random.Generator, int], np.ndarray]
DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(100.0, 20.0, n),
    "lognormal, sigma .8": lambda rng, n: 100.0 * rng.lognormal(0.0, 0.8, n),
    "70 % work, 30 % fail": lambda rng, n: (
        np.where(rng.random(n) < 0.7, 100.0, 10.0) + rng.normal(size=n)
    ),
}


def main() -> None:
    """Simulate all distributions with both tests, and print the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=2500)
    parser.add_argument("--n", type=int, default=5, help="seeds of each group, or of each look")
    parser.add_argument("--looks", type=int, default=5)
    options = parser.parse_args()
    table = Table(title=f"false `A is better` in {options.pairs} pairs of equal groups")
    for name in ("returns", "test", "seeds", "share", "95 % interval (Wilson)", "bar", "met"):
        table.add_column(name)
    rows = [(name, looks) for name in DISTRIBUTIONS for looks in (1, options.looks)]
    for row, (name, looks) in enumerate(track(rows, console=Console(stderr=True))):
        draw = DISTRIBUTIONS[name]
        pairs = [(row, pair) for pair in range(options.pairs)]
        false = sum(says(draw, pair, options.n, looks) for pair in pairs)
        table.add_row(name, *row_of(false, options.pairs, options.n, looks))
    Console().print(table)


def row_of(false: int, pairs: int, n: int, looks: int) -> list[str]:
    """Return the cells of a row after the name."""
    found = wilson(false, pairs)
    test = "permutation" if looks == 1 else f"AdaStop, {looks} looks"
    ends = f"{found.low:.3f} to {found.high:.3f}"
    met = "yes" if found.value <= BAR else "no"
    return [test, f"{n * looks} + {n * looks}", f"{found.value:.3f}", ends, f"{BAR:g}", met]


def says(draw: Draw, pair: tuple[int, int], n: int, looks: int) -> bool:
    """Return whether `compare` shows a difference between two equal groups.

    Args:
        draw: draws the final values of seeds.
        pair: the numbers of the row and of the pair, which are its seed.
        n: the seeds of each group, at each look.
        looks: the number of looks; 1 for the fixed test.
    """
    rng = np.random.default_rng(pair)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for group in ("A", "B"):
            finals = draw(rng, n * looks)
            write_run(home, group, "Equal-v0", range(n * looks), curve_to(finals))
        if looks == 1:
            found = compared(home, [])
            return found["environments"][0]["pairs"][0]["p_corrected"] <= BAR
        values = {
            "question": "is A better?",
            "hypotheses": [{"name": "none", "predicts": "no difference is shown"}],
            "metric": METRIC,
            "n": n * looks,
            "looks": looks,
        }
        register(home, "plan", registration_of(values))
        found = compared(home, ["--sequential", "--registered", "plan"])
        return found["pairs"][0]["decision"] in ("better", "worse")


def curve_to(finals: np.ndarray) -> Callable[[int, int], np.ndarray]:
    """Return a curve for each seed that ends at its final value."""
    return lambda place, _: np.linspace(0.0, float(finals[place]), POINTS)


def compared(home: Path, options: list[str]) -> dict[str, Any]:
    """Return the JSON of a comparison of A and B."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = runshelf(["compare", "A", "B", "--home", str(home), "--json", *options])
    assert status == 0
    return json.loads(out.getvalue())


if __name__ == "__main__":
    main()
