"""PPO on CartPole and MinAtar's Breakout with 1 to 4096 seeds on a GPU: seconds per seed.

    python benchmarks/gpu.py [--only cartpole,breakout] [--seeds 1,4,16,64,256,1024,4096] [--quick]

The settings are those of purejaxrl. Its published times, for comparison, are read from the plots in
its repository (A40 and A100). Without a GPU nothing is measured, unless `--any` is given.
Compilation is printed apart.
"""

import argparse
import sys
from statistics import median
from typing import Any

import jax
from driven import env_steps_per_second, phases
from rich.console import Console
from rich.table import Table

from backflip.training import runtime

SEEDS = "1,4,16,64,256,1024,4096"
CLEANRL: dict[str, Any] = {
    "rollout_length": 128,
    "epochs": 4,
    "learning_rate_end": 0.0,
    "discount": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "clip_range_end": 0.2,
    "entropy_coef": 0.01,
    "entropy_coef_end": 0.01,
    "advantage_floor": 0.0,  # a departure that CleanRL does not have
}
# Environment, settings, env steps of a whole run, updates of a phase, published seconds by seeds.
TASKS: dict[str, tuple[str, dict[str, Any], int, int, dict[int, str]]] = {
    "cartpole": (
        "CartPole-v1",
        CLEANRL | {"num_envs": 4, "minibatches": 4, "learning_rate": 2.5e-4, "env_steps": 500_000},
        500_000,
        50,
        {1: "18 (A40), 25 (A100)", 1024: "92 (A40)", 2048: "98 (A100)"},
    ),
    "breakout": (
        "MinAtar/Breakout-v1",
        CLEANRL | {"num_envs": 64, "minibatches": 8, "learning_rate": 5e-3, "env_steps": 10**7},
        10_000_000,
        4,
        {1: "34 (A40)", 256: "325 (A100)"},
    ),
}


def show(name: str, options: argparse.Namespace) -> None:
    """Measure one task with increasing numbers of seeds and print its table."""
    env, settings, env_steps, updates, published = TASKS[name]
    grid = Table(title=f"PPO, {env}, {env_steps:,} env steps a seed", title_justify="left")
    headings = ("seeds", "env steps/s, all seeds", "seconds of a whole run", "seconds a seed")
    for heading in (*headings, "before the first phase, s", "purejaxrl: seconds of a whole run"):
        grid.add_column(heading, justify="right")
    for seeds in (int(count) for count in options.seeds.split(",")):
        print(f"{env}: {seeds:,} seeds ...", file=sys.stderr, flush=True)
        output = phases(
            "ppo",
            env,
            settings=settings,
            updates=2 if options.quick else updates,
            phases=1 if options.quick else 3,
            seeds=seeds,
        )
        rate = env_steps_per_second(output | {"seconds": [median(output["seconds"])]})
        whole = seeds * env_steps / rate
        row = (f"{seeds:,}", f"{rate:,.0f}", f"{whole:.3g}", f"{whole / seeds:.3g}")
        grid.add_row(*row, f"{output['before_seconds']:.3g}", published.get(seeds, "-"))
    Console(width=150).print(grid)


def main() -> None:
    """Measure on a GPU; exit with a message if there is none."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", default=",".join(TASKS), help="tasks, with commas")
    parser.add_argument("--seeds", default=SEEDS, help="numbers, with commas")
    parser.add_argument("--any", action="store_true", help="measure on any device")
    parser.add_argument("--quick", action="store_true", help="one short phase, to test the program")
    options = parser.parse_args()
    runtime.prepare()
    device = jax.devices()[0]
    if device.platform == "cpu" and not options.any:
        print("no GPU: JAX finds only the CPU here, nothing was measured; --any measures on it")
        return
    print(f"device: {device.device_kind}, JAX {jax.__version__}")
    for name in options.only.split(","):
        show(name, options)


if __name__ == "__main__":
    main()
