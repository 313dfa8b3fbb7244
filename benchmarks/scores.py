"""Measure the scores that the algorithms' pages claim, and keep each as a file.

    python benchmarks/scores.py [--only dqn-CartPole-v1 ...] [--seed 1000]

Each cell is one `backflip train` in a process of its own, with the defaults that a person gets;
`docs/scores/ALGORITHM-ENV.json` holds its command, commit, machine, returns and 95 % interval.
"""

import argparse
import json
import os
import platform
import subprocess
from typing import Any

import numpy as np
from side_by_side import ROOT, ours

from backflip.archive.statistics import mean_interval

SCORES = ROOT / "docs" / "scores"

MILLION = 1_000_000
# What is asked for: the mean over the seeds, over how many, and after how many env steps, where
# that is not the default. Of MuJoCo: CleanRL's mean less its deviation (PPO), Spinning Up's mean
# after as many env steps (the others; it had Gym's v3, whose Hopper and Walker2d are other tasks
# than v5). A seed of one that replays takes half an hour to an hour of a core: one is all there
# was time for. Of Pong: what CleanRL's PPO reaches, after ten million.
CELLS: dict[tuple[str, str], tuple[float | None, int, int | None]] = {
    ("ppo", "CartPole-v1"): (475, 10, None),
    ("a2c", "CartPole-v1"): (475, 10, None),
    ("vpg", "CartPole-v1"): (475, 10, None),
    ("dqn", "CartPole-v1"): (475, 10, None),
    ("cem", "CartPole-v1"): (475, 10, None),
    ("a2c", "Acrobot-v1"): (-95, 10, None),
    ("dqn", "Acrobot-v1"): (-95, 10, None),
    ("ppo", "Acrobot-v1"): (-95, 10, None),
    ("dqn", "MountainCar-v0"): (-125, 10, None),
    ("ddpg", "Pendulum-v1"): (-175, 10, None),
    ("td3", "Pendulum-v1"): (-175, 10, None),
    ("sac", "Pendulum-v1"): (-175, 10, None),
    ("ppo", "Pendulum-v1"): (-175, 10, None),
    ("ppo", "HalfCheetah-v5"): (1397, 5, MILLION),
    ("ppo", "Hopper-v5"): (2111, 5, MILLION),
    ("ppo", "Walker2d-v5"): (1716, 5, MILLION),
    ("vpg", "HalfCheetah-v5"): (-49, 5, MILLION),
    ("vpg", "Hopper-v5"): (391, 5, MILLION),
    ("vpg", "Walker2d-v5"): (293, 5, MILLION),
    ("ddpg", "HalfCheetah-v5"): (8893, 1, MILLION // 2),
    ("ddpg", "Hopper-v5"): (1520, 1, MILLION // 2),
    ("ddpg", "Walker2d-v5"): (1004, 1, MILLION // 2),
    ("td3", "HalfCheetah-v5"): (8624, 1, MILLION // 2),
    ("td3", "Hopper-v5"): (2734, 1, MILLION // 2),
    ("td3", "Walker2d-v5"): (2934, 1, MILLION // 2),
    ("sac", "HalfCheetah-v5"): (10351, 1, MILLION // 2),
    ("sac", "Hopper-v5"): (3231, 1, MILLION // 2),
    ("sac", "Walker2d-v5"): (3666, 1, MILLION // 2),
    ("ppo", "MinAtar/Breakout-v1"): (None, 10, MILLION),
    ("dqn", "MinAtar/Breakout-v1"): (None, 10, MILLION),
    ("ppo", "ALE/Pong-v5"): (20, 3, None),
    ("dqn", "ALE/Pong-v5"): (18, 3, 1_200_000),
}
# Arguments of environments: published scores of Pong are of games without sticky actions, and DQN
# learnt it no worse from a quarter of the pixels (a seed each).
AS_PUBLISHED = "repeat_action_probability=0"
ENV_ARGS = {
    ("ppo", "ALE/Pong-v5"): (AS_PUBLISHED,),
    ("dqn", "ALE/Pong-v5"): (AS_PUBLISHED, "size=42"),
}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="ALGORITHM-ENV")
    parser.add_argument("--seed", type=int, default=1000, help="the first seed")
    options = parser.parse_args()
    SCORES.mkdir(exist_ok=True)
    print("| algorithm | environment | asked for | mean ± 95 % | worst seed | seconds |")
    print("|---|---|---|---|---|---|")
    for (algorithm, env), (bar, seeds, env_steps) in CELLS.items():
        name = f"{algorithm}-{env.replace('/', '-')}"
        if not options.only or name in options.only:
            score = measure(algorithm, env, seeds, options.seed, env_steps) | {"asked_for": bar}
            (SCORES / f"{name}.json").write_text(json.dumps(score, indent=1) + "\n")
            print(
                f"| {algorithm} | {env} | {'none' if bar is None else bar} | "
                f"{with_margin(score)} | "
                f"{score['worst']:.1f} | {score['seconds']:.0f} |",
                flush=True,
            )


def measure(
    algorithm: str, env: str, seeds: int, first: int, env_steps: int | None
) -> dict[str, Any]:
    """Return what a run of an algorithm reaches, and what is needed to repeat it."""
    words = ["train", algorithm, env, "--seeds", str(seeds), "--seed", str(first), "--json"]
    words += [] if env_steps is None else ["--env-steps", str(env_steps)]
    words += [word for arg in ENV_ARGS.get((algorithm, env), ()) for word in ("--env-arg", arg)]
    result = ours(*words).output
    returns = np.array(result["returns"])
    found = mean_interval(returns[:, None])
    margin = float(found.high[0] - found.centre[0])
    return {
        "command": " ".join(["backflip", *words]),
        "commit": text_of("git", "rev-parse", "HEAD"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "env_steps": result["env_steps"],
        "seeds": result["seeds"],
        "returns": [round(value, 3) for value in returns.tolist()],
        "mean": round(float(returns.mean()), 3),
        "margin": None if seeds == 1 else round(margin, 3),  # one says nothing of the others
        "worst": round(float(returns.min()), 3),
        "seconds": result["seconds"]["total"],
    }


def with_margin(score: dict[str, Any]) -> str:
    """Return the mean and what is known of how far it may be off."""
    margin = score["margin"]
    return f"{score['mean']:.1f} " + ("(one seed)" if margin is None else f"± {margin:.1f}")


def text_of(*command: str) -> str:
    """Return what a command prints in the project's folder."""
    return subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
