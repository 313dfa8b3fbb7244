"""The same measurements on real runs: 192 of SAC and 192 of TD3 on HalfCheetah.

    python benchmarks/statistics/half_cheetah.py FOLDER

FOLDER holds `sac_hc_final_perfs.txt` and `td3_hc_final_perfs.txt`, from `data` of
github.com/flowersteam/rl_stats: the runs of Colas et al. 2019, arXiv:1904.06979. Groups of n runs
are drawn with replacement, so the 192 runs are the whole population and its mean is known. The
result is docs/results/half_cheetah.json.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from coverage import MEANS, REPETITIONS, SEED, SIZES, held  # the file beside this one

from runshelf.statistics.differences import welch
from runshelf.statistics.permutation import permutation_test

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "half_cheetah.json"


def coverage_row(name: str, runs: np.ndarray, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Coverage of the mean of all runs by intervals of n."""
    values = rng.choice(runs, (n, REPETITIONS))
    covered = {way: held(*interval(values), float(runs.mean())) for way, interval in MEANS.items()}
    return {"runs": name, "n": n, **covered}


def finding_row(
    name: str, one: np.ndarray, other: np.ndarray, n: int, rng: np.random.Generator
) -> dict[str, Any]:
    """How often n against n runs are called different at .05."""
    first, second = rng.choice(one, (REPETITIONS, n)), rng.choice(other, (REPETITIONS, n))
    pairs = list(zip(first, second, strict=True))
    ends = [welch(x, y) for x, y in pairs]
    return {
        "groups": name,
        "n": n,
        "permutation": share([permutation_test(x, y).p <= 0.05 for x, y in pairs]),
        "Welch": share([one.low > 0.0 or one.high < 0.0 for one in ends]),
    }


def share(found: list[bool]) -> float:
    """The share of repetitions with a finding."""
    return round(float(np.mean(found)), 4)


def main() -> None:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sac, td3 = (np.loadtxt(folder / f"{name}_hc_final_perfs.txt") for name in ("sac", "td3"))
    rng = np.random.default_rng(SEED)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=RESULTS.parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    result = {
        "command": "python benchmarks/statistics/half_cheetah.py FOLDER",
        "commit": commit,
        "repetitions": REPETITIONS,
        "seed": SEED,
        "runs": {"SAC": len(sac), "TD3": len(td3)},
        "coverage": [
            coverage_row(name, runs, n, rng)
            for name, runs in (("SAC", sac), ("TD3", td3))
            for n in SIZES
        ],
        "findings": [
            finding_row(name, one, other, n, rng)
            for name, one, other in (
                ("SAC against SAC", sac, sac),
                ("TD3 against TD3", td3, td3),
                ("SAC against TD3", sac, td3),
            )
            for n in (4, 5, 10)
        ],
    }
    for row in (*result["coverage"], *result["findings"]):
        print(json.dumps(row))
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
