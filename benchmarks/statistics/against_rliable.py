"""Aggregates of scores beside rliable's, on the Atari 100k scores of its paper.

    python benchmarks/peers/install.py rliable
    python benchmarks/statistics/against_rliable.py FOLDER

FOLDER holds `RANDOM.json`, `HUMAN.json` and a file for each method, scores by game, for example
results/data of github.com/eloialonso/iris: the runs of Agarwal et al. 2021, arXiv:2108.13264, which
rliable's own example reads, and five of IRIS. Without FOLDER, scores are drawn at random.

Point estimates must agree to 1e-6; intervals are listed side by side, since both resample with
random numbers of their own. The result is docs/results/against_rliable.json.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runshelf.statistics.aggregates import AGGREGATES, estimate, performance_profile
from runshelf.statistics.improvement import probability_of_improvement
from runshelf.statistics.scores import Scores

ROOT = Path(__file__).parents[2]
PEER = ROOT / "benchmarks" / "peers" / "rliable_scores.py"
PYTHON = ROOT / ".cache" / "peers" / "rliable" / "bin" / "python"
RESULTS = ROOT / "docs" / "results" / "against_rliable.json"
METHODS = ("SPR", "DrQ(eps)", "IRIS", "SimPLe")
PAIRS = [("SPR", "DrQ(eps)"), ("SPR, 10 runs", "DrQ(eps), 10 runs"), ("IRIS", "SPR, 10 runs")]
THRESHOLDS = np.linspace(0.0, 2.0, 9)
TOLERANCE = 1e-6
RESAMPLES = 2_000

Groups = dict[str, Scores]


def read_groups(folder: Path) -> Groups:
    """Return human-normalised scores of each method, and of the first ten runs of large ones."""
    low, high = (json.loads((folder / f"{name}.json").read_text()) for name in ("RANDOM", "HUMAN"))
    references = {game: (low[game][0], high[game][0]) for game in low}
    groups: Groups = {}
    for method in METHODS:
        runs = {game: np.array(one) for game, one in read_runs(folder, method).items()}
        groups[method] = Scores(runs).normalised(references)
        if groups[method].n > 10 * len(runs):
            ten = {game: one[:10] for game, one in runs.items()}
            groups[f"{method}, 10 runs"] = Scores(ten).normalised(references)
    return groups


def read_runs(folder: Path, method: str) -> Mapping[str, list[float]]:
    """Return the scores of a method by game."""
    return json.loads((folder / f"{method}.json").read_text())


def drawn_groups() -> Groups:
    """Return random groups of the same names and sizes."""
    rng = np.random.default_rng(0)
    games = [f"game {i}" for i in range(26)]
    sizes = {"SPR": 100, "DrQ(eps)": 100, "IRIS": 5, "SimPLe": 5}
    groups: Groups = {}
    for method, runs in sizes.items():
        matrix = rng.gamma(0.5, rng.gamma(1.0, 1.0, 26), (runs, 26)).round(3)
        groups[method] = Scores.of_matrix(matrix, games)
        if runs > 10:
            groups[f"{method}, 10 runs"] = Scores.of_matrix(matrix[:10], games)
    return groups


def theirs(groups: Groups) -> dict[str, Any]:
    """Return the numbers of rliable."""
    asked = {
        "scores": {
            name: np.stack([*one.runs.values()], 1).tolist() for name, one in groups.items()
        },
        "pairs": PAIRS,
        "thresholds": THRESHOLDS.tolist(),
        "resamples": RESAMPLES,
    }
    done = subprocess.run(
        [PYTHON, PEER], input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def ours(groups: Groups) -> dict[str, Any]:
    """Return the same numbers, computed by runshelf."""
    profiles = {name: performance_profile(one, THRESHOLDS) for name, one in groups.items()}
    return {
        "aggregates": {
            name: [list(estimate(one, aggregate)[:3]) for aggregate in AGGREGATES.values()]
            for name, one in groups.items()
        },
        "improvement": {
            f"{a} > {b}": [list(probability_of_improvement(groups[a], groups[b])[:3])]
            for a, b in PAIRS
        },
        "profile": {
            name: np.stack([one.share, one.low, one.high], 1).tolist()
            for name, one in profiles.items()
        },
    }


def rows(mine: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    """Return aggregates and improvements, ours beside theirs."""
    found = []
    for part, names in (("aggregates", list(AGGREGATES)), ("improvement", ["P(X > Y)"])):
        for group, values in mine[part].items():
            for name, one, its in zip(names, values, other[part][group], strict=True):
                rounded = [[round(number, 4) for number in each] for each in (one, its)]
                found.append(
                    {"group": group, "what": name, "ours": rounded[0], "theirs": rounded[1]}
                )
    return found


def largest_gap(mine: dict[str, Any], other: dict[str, Any], column: int) -> float:
    """Return the largest difference of values (column 0), or of ends (1 and 2)."""
    return max(
        abs(one[column] - its[column])
        for part in mine
        for group in mine[part]
        for one, its in zip(mine[part][group], other[part][group], strict=True)
    )


def main() -> None:
    """Compare, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    folder = parser.parse_args().folder
    groups = read_groups(folder) if folder else drawn_groups()
    mine, other = ours(groups), theirs(groups)
    table = rows(mine, other)
    for row in table:
        print(f"{row['group']:40} {row['what']:15} {row['ours']} {row['theirs']}")
    gap = largest_gap(mine, other, 0)
    ends = max(largest_gap(mine, other, 1), largest_gap(mine, other, 2))
    print(f"largest difference of point estimates {gap:.1e}, of ends {ends:.3f}", file=sys.stderr)
    store(table, gap, ends, "Atari 100k" if folder else "drawn at random")
    if gap > TOLERANCE:
        sys.exit(f"point estimates differ by {gap}, more than {TOLERANCE}")


def store(table: list[dict[str, Any]], gap: float, ends: float, data: str) -> None:
    """Write the data file."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    result = {
        "command": "python benchmarks/statistics/against_rliable.py FOLDER",
        "commit": commit,
        "data": data,
        "resamples": RESAMPLES,
        "largest_difference_of_values": float(f"{gap:.1e}"),
        "largest_difference_of_ends": round(ends, 4),
        "rows": table,
    }
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
