"""PPO on CartPole-v1 against Stable-Baselines3 (whole process) and rejax (env steps per second).

`python benchmarks/cartpole_ppo.py --pairs 3`. All use the settings of SB3's zoo: 8 environments
x 32 steps, 20 epochs over one batch of 256, γ .98, λ .8, learning rate 1e-3 and clip .2 both to 0.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

from side_by_side import Row, Timed, in_turn, matmul_flops, peer, run, table

BACKFLIP = Path(sys.executable).parent / "backflip"


def ours(seeds: int, env_steps: int, first: int) -> Timed:
    """Our whole process: train, then evaluate every seed over at least 100 episodes."""
    options = ["--seeds", seeds, "--seed", first, "--env-steps", env_steps, "--json"]
    return run([BACKFLIP, "train", "ppo", "CartPole-v1", *map(str, options)])


def rate(output: dict[str, Any]) -> float:
    """Env steps per second of training, all seeds together, compilation left out."""
    return len(output["seeds"]) * output["env_steps"] / output["seconds"]["train"]


def flops_per_env_step(hidden: int = 64, epochs: int = 20) -> float:
    """Additions and multiplications that PPO needs for one env step: 2P to act, 6P an epoch.

    P counts the weights of an actor 4-64-64-2 and a critic 4-64-64-1.
    """
    weights = 2 * (4 * hidden + hidden * hidden) + 3 * hidden
    return (2 + 6 * epochs) * weights


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--env-steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=100, help="our first seed")
    parser.add_argument("--only", choices=["sb3", "rejax"])
    arguments = parser.parse_args()
    pairs, env_steps, first = arguments.pairs, arguments.env_steps, arguments.seed
    rows: list[Row] = []
    notes: list[str] = []
    flops = matmul_flops()

    ours(10, env_steps, first)  # fills our compilation cache, as the first run on a machine does
    if arguments.only != "rejax":
        # One thread: PyTorch's default of one per core is slower for networks this small.
        sb3 = ["--env-steps", env_steps, "--threads", 1]
        measured = in_turn(
            pairs, lambda: ours(10, env_steps, first), lambda: peer("sb3", "sb3_ppo.py", *sb3)
        )
        rows.append(
            Row(
                "whole process, seconds: our 10 seeds, SB3's one",
                [a.seconds for a, _ in measured],
                [b.seconds for _, b in measured],
            )
        )
        rows.append(
            Row(
                "the same, CPU seconds",
                [a.cpu_seconds for a, _ in measured],
                [b.cpu_seconds for _, b in measured],
            )
        )
        returns = measured[-1][0].output["returns"]
        notes.append(
            f"our true returns: mean {statistics.mean(returns):.1f}, least {min(returns):.1f}"
        )
        notes.append(f"SB3's: {measured[-1][1].output['return']:.1f}")
        notes.append(f"our seconds: {measured[-1][0].output['seconds']}")
    if arguments.only != "sb3":
        limit = max(flops, matmul_flops()) / flops_per_env_step()
        for seeds in (1, 10):
            rejax = ["--env-steps", env_steps, "--seeds", seeds]
            ours(seeds, env_steps, first)
            measured = in_turn(
                pairs,
                lambda seeds=seeds: ours(seeds, env_steps, first),
                lambda rejax=rejax: peer("rejax", "rejax_ppo.py", *rejax),
            )
            rows.append(
                Row(
                    f"env steps per second, {seeds} seed{'s' * (seeds > 1)}, rejax 0.1.3",
                    [rate(a.output) for a, _ in measured],
                    [b.output["env_steps_per_second"] for _, b in measured],
                    limit,
                )
            )
            notes.append(f"rejax's returns, {seeds} seeds: {measured[-1][1].output['returns']}")
    table(f"PPO, CartPole-v1, {env_steps:,} env steps a seed, {pairs} pairs in turn", rows)
    print(*notes, sep="\n")
    print(
        f"limit: {flops_per_env_step() / 1e6:.2f} MFLOP per env step at the rate of 512 x 512"
        " matrix products on all cores"
    )


if __name__ == "__main__":
    main()
