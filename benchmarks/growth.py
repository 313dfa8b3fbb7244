"""How the cost grows with seeds, with environments and with the size of a replay.

    python benchmarks/growth.py [--only seeds,environments,buffer] [--pictures docs/pictures]
        [--quick]

Each point is a separate process and the fastest of three phases. Prints the seconds and the slope
on logarithmic axes, over all points and the steepest one; slope 1 is linear. Draws
`growth-NAME.svg`.
"""

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from log_log import log_log_svg
from rich.console import Console
from rich.table import Table
from side_by_side import ROOT, driven

MOST = 1.1  # largest slope called linear: points scatter by some percent
PPO: dict[str, Any] = {"num_envs": 8, "rollout_length": 32, "epochs": 4, "env_steps": 10**9}
DQN: dict[str, Any] = {
    "num_envs": 8,
    "rollout_length": 32,
    "updates_per_step": 0.5,
    "batch_size": 64,
    "hidden": (64, 64),
}


class Growth(NamedTuple):
    """One quantity to increase.

    Attributes:
        what: the quantity.
        work: the work done at each size.
        sizes: the sizes to measure.
        at: (size, phases) -> the output of `driven.py` at this size.
    """

    what: str
    work: str
    sizes: tuple[int, ...]
    at: Callable[[int, int], dict[str, Any]]


def over_seeds(seeds: int, phases: int) -> dict[str, Any]:
    """PPO with more seeds."""
    options = ["--seeds", seeds, "--updates", 20, "--phases", phases]
    return driven("ppo", "CartPole-v1", PPO, *options)


def over_environments(num_envs: int, phases: int) -> dict[str, Any]:
    """PPO with more environments."""
    settings = PPO | {"num_envs": num_envs}
    return driven("ppo", "CartPole-v1", settings, "--updates", 10, "--phases", phases)


def over_buffers(size: int, phases: int) -> dict[str, Any]:
    """DQN with a larger replay, full from the start, so that samples come from all of it."""
    filled = {"buffer_size": size, "learning_starts": size, "epsilon_steps": 2 * size + 10_000}
    settings = DQN | filled | {"env_steps": 10**8}
    return driven("dqn", "CartPole-v1", settings, "--updates", 20, "--phases", phases)


GROWTHS = {
    "seeds": Growth("seeds", "PPO on CartPole-v1, 20 updates", (1, 10, 100), over_seeds),
    "environments": Growth(
        "environments of one seed",
        "PPO on CartPole-v1, 10 updates of 32 env steps each",
        (1, 4, 16, 64, 256, 1024, 4096),
        over_environments,
    ),
    "buffer": Growth(
        "env steps in a full replay",
        "DQN on CartPole-v1, 5,120 env steps, 2,560 updates",
        (10_000, 31_000, 100_000, 310_000, 1_000_000),
        over_buffers,
    ),
}


def measured(growth: Growth, sizes: tuple[int, ...], phases: int) -> list[float]:
    """Return the seconds of each size."""
    seconds: list[float] = []
    for size in sizes:
        print(f"{growth.what}: {size:,} ...", file=sys.stderr, flush=True)
        seconds.append(min(growth.at(size, phases)["seconds"]))
    return seconds


def slopes(sizes: tuple[int, ...], seconds: list[float]) -> tuple[float, float]:
    """Return the slope of the line through all points, by least squares, and the steepest."""
    x, y = np.log(sizes), np.log(seconds)
    steepest = max((d - b) / (c - a) for (a, b), (c, d) in pairwise(zip(x, y, strict=True)))
    return float(np.polyfit(x, y, 1)[0]), float(steepest)


def show(growth: Growth, sizes: tuple[int, ...], seconds: list[float]) -> str:
    """Print the table; return the slopes in words."""
    grid = Table(title=f"{growth.what}: {growth.work}", title_justify="left")
    for heading in (growth.what, "seconds", "seconds for each"):
        grid.add_column(heading, justify="right")
    for size, taken in zip(sizes, seconds, strict=True):
        grid.add_row(f"{size:,}", f"{taken:.4g}", f"{taken / size:.3g}")
    Console(width=120).print(grid)
    slope, steepest = slopes(sizes, seconds)
    verdict = "no worse than linear" if slope <= MOST else "WORSE than linear"
    return f"slope {slope:.2f}, steepest between neighbours {steepest:.2f}: {verdict}"


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", default=",".join(GROWTHS), help="names, with commas")
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--phases", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two sizes, one phase, no picture")
    options = parser.parse_args()
    for name in options.only.split(","):
        growth = GROWTHS[name]
        sizes = growth.sizes[:2] if options.quick else growth.sizes
        seconds = measured(growth, sizes, 1 if options.quick else options.phases)
        verdict = show(growth, sizes, seconds)
        print(verdict)
        if not options.quick:
            picture = log_log_svg(
                sizes, seconds, title=growth.work, found=verdict, x=growth.what, y="seconds"
            )
            path = options.pictures / f"growth-{name}.svg"
            path.write_text(picture)
            print(f"drawn: {path}")


if __name__ == "__main__":
    main()
