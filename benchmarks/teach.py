"""Teach each task of the bars from comparisons, whole processes, and print how far they come.

    python benchmarks/teach.py [NAME ...] [--first FIRST]

Every row is one `backflip teach ... --json` in a process of its own, on seeds given by `--first`
(default 1000: seeds nobody tuned on). The last column is the physical limit of the score.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BACKFLIP = Path(sys.executable).with_name("backflip")
ROWS: dict[str, tuple[list[str], str, str]] = {
    "dot": (["dot", "--labels", "100", "--seeds", "10"], "mean >= .95, each >= .90", "1"),
    "dot-corner": (
        ["dot", "--labels", "100", "--seeds", "10", "--env-arg", "goal=40,60"],
        "mean >= .95, each >= .90",
        "1",
    ),
    "dot-right": (
        ["dot", "--labels", "100", "--seeds", "10", "--env-arg", "goal=120,150"],
        "mean >= .95, each >= .90",
        "1",
    ),
    "pendulum": (
        ["Pendulum-v1", "--labels", "50", "--seeds", "10"],
        "mean >= -165, each >= -220, <= 60 s",
        "-138",
    ),
    "cartpole": (["CartPole-v1", "--labels", "100", "--seeds", "10"], "each >= 475", "500"),
    "pendulum-host": (
        ["gymnasium:Pendulum-v1", "--labels", "50", "--seeds", "5"],
        "as the compiled driver",
        "-138",
    ),
    "inverted-pendulum": (
        ["InvertedPendulum-v5", "--labels", "100", "--seeds", "5"],
        ">= 900 on 4 of 5",
        "1000",
    ),
}


def main() -> None:
    """Run the rows asked for, one after the other, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows; default: all")
    parser.add_argument("--first", default="1000", help="the first seed")
    options = parser.parse_args()
    print(
        "| row | bar | mean | worst | every seed | seconds | limit |\n|---|---|---|---|---|---|---|"
    )
    for name in options.names or ROWS:
        arguments, bar, limit = ROWS[name]
        result, seconds = _teach([*arguments, "--seed", options.first])
        scores = [round(score, 3) for score in result.get("score") or result["returns"]]
        mean = sum(scores) / len(scores)
        print(
            f"| {name} | {bar} | {mean:.3f} | {min(scores)} | {sorted(scores)} "
            f"| {seconds:.0f} | {limit} |",
            flush=True,
        )


def _teach(arguments: list[str]) -> tuple[dict[str, Any], float]:
    """Return the result of one whole process, and how long it took."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as home:
        command = [str(BACKFLIP), "teach", *arguments, "--home", home, "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout), time.perf_counter() - began


if __name__ == "__main__":
    main()
