"""Measure the scores in the docs of the algorithms and store each in a file.

    python benchmarks/scores.py [--only dqn-CartPole-v1 ...] [--seed 1000]

Each cell is one `backflip train` process with the default settings, except for variants.
`docs/scores/ALGORITHM-ENV.json` holds its command, commit, machine,
returns and 95 % interval.
"""

import argparse
import json
import os
import platform
import subprocess
from typing import Any, NamedTuple

import numpy as np
from side_by_side import ROOT, ours

from runshelf.statistics import mean_interval

SCORES = ROOT / "docs" / "scores"

MILLION = 1_000_000


class Cell(NamedTuple):
    """One measurement.

    Attributes:
        algorithm: its name.
        env: the environment's id.
        asked_for: the required mean over the seeds; None if there is no bar.
        seeds: number of seeds.
        env_steps: per seed; None for the default.
        options: more command-line options.
        variant: distinguishes cells with the same algorithm and environment.
    """

    algorithm: str
    env: str
    asked_for: float | None
    seeds: int = 10
    env_steps: int | None = None
    options: str = ""
    variant: str = ""

    @property
    def name(self) -> str:
        """The name of the file, without extension."""
        parts = (self.algorithm, self.env.replace("/", "-"), self.variant)
        return "-".join(part for part in parts if part)


CLEANRL = (
    "num_envs=4 rollout_length=128 epochs=4 minibatches=4 learning_rate=2.5e-4 clip_range_end=0.2 "
    "discount=0.99 gae_lambda=0.95 entropy_coef=0.01 entropy_coef_end=0.01 value_clip_range=0.2"
)
SPINNING_UP = (  # of SAC
    "batch_size=100 actor_learning_rate=1e-3 critic_learning_rate=1e-3 "
    "temperature_learning_rate=0 initial_temperature=0.2"
)
# Published scores of Pong use games without sticky actions. DQN learned Pong equally well from a
# quarter of the pixels (one seed each).
NOT_STICKY = "--env-arg repeat_action_probability=0"


def settings(pairs: str) -> str:
    """Return command-line options for settings."""
    return " ".join(f"--set {pair}" for pair in pairs.split())


# Bars for MuJoCo: CleanRL's mean minus its deviation (PPO); Spinning Up's mean after as many env
# steps (the others; on Gym's v3, whose Hopper and Walker2d differ from v5). A seed of an off-policy
# algorithm takes half an hour to an hour of a core, so there is one seed. Bar for Pong: the score
# of CleanRL's PPO after ten million env steps.
CELLS = (
    Cell("ppo", "CartPole-v1", 475),
    Cell("ppo", "CartPole-v1", 485, 10, MILLION // 2, settings(CLEANRL), "cleanrl"),
    Cell("a2c", "CartPole-v1", 475),
    Cell("vpg", "CartPole-v1", 475),
    Cell("dqn", "CartPole-v1", 475),
    Cell("cem", "CartPole-v1", 475),
    Cell("a2c", "Acrobot-v1", -95),
    Cell("dqn", "Acrobot-v1", -95),
    Cell("ppo", "Acrobot-v1", -95),
    Cell("dqn", "MountainCar-v0", -125),
    Cell("ddpg", "Pendulum-v1", -175),
    Cell("td3", "Pendulum-v1", -175),
    Cell("sac", "Pendulum-v1", -175),
    Cell("ppo", "Pendulum-v1", -175),
    Cell("ppo", "HalfCheetah-v5", 1397, 5, MILLION),
    Cell("ppo", "Hopper-v5", 2111, 5, MILLION),
    Cell("ppo", "Walker2d-v5", 1716, 5, MILLION),
    Cell("vpg", "HalfCheetah-v5", -49, 5, MILLION),
    Cell("vpg", "Hopper-v5", 391, 5, MILLION),
    Cell("vpg", "Walker2d-v5", 293, 5, MILLION),
    Cell("ddpg", "HalfCheetah-v5", 8893, 1, MILLION // 2),
    Cell("ddpg", "Hopper-v5", 1520, 1, MILLION // 2),
    Cell("ddpg", "Walker2d-v5", 1004, 1, MILLION // 2),
    Cell("td3", "HalfCheetah-v5", 8624, 1, MILLION // 2),
    Cell("td3", "Hopper-v5", 2734, 1, MILLION // 2),
    Cell("td3", "Walker2d-v5", 2934, 1, MILLION // 2),
    Cell("sac", "HalfCheetah-v5", 10351, 1, MILLION // 2),
    Cell("sac", "Hopper-v5", 3231, 1, MILLION // 2),
    Cell("sac", "Hopper-v5", 3231, 1, MILLION // 2, settings(SPINNING_UP), "spinningup"),
    Cell("sac", "Walker2d-v5", 3666, 1, MILLION // 2),
    Cell("ppo", "MinAtar/Breakout-v1", None, 10, MILLION),
    Cell("ppo", "MinAtar/Asterix-v1", None, 10, MILLION),
    Cell("ppo", "MinAtar/Freeway-v1", None, 10, MILLION),
    Cell("ppo", "MinAtar/SpaceInvaders-v1", None, 10, MILLION),
    Cell("ppo", "MinAtar/Seaquest-v1", None, 10, MILLION),
    Cell("dqn", "MinAtar/Breakout-v1", None, 10, MILLION),
    Cell("ppo", "ALE/Pong-v5", 20, 3, None, NOT_STICKY),
    Cell("dqn", "ALE/Pong-v5", 18, 3, 1_200_000, f"{NOT_STICKY} --env-arg size=42"),
    Cell("dqn", "ALE/Pong-v5", None, 1, 800_000, "--env-arg size=42", "sticky"),
)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="ALGORITHM-ENV[-VARIANT]")
    parser.add_argument("--seed", type=int, default=1000, help="the first seed")
    options = parser.parse_args()
    SCORES.mkdir(exist_ok=True)
    print("| algorithm | environment | asked for | mean ± 95 % | worst seed | seconds |")
    print("|---|---|---|---|---|---|")
    for cell in CELLS:
        if not options.only or cell.name in options.only:
            score = measure(cell, options.seed) | {"asked_for": cell.asked_for}
            (SCORES / f"{cell.name}.json").write_text(json.dumps(score, indent=1) + "\n")
            print(
                f"| {cell.algorithm} | {' '.join((cell.env, cell.variant)).strip()} | "
                f"{'none' if cell.asked_for is None else cell.asked_for} | {with_margin(score)} | "
                f"{score['worst']:.1f} | {score['seconds']:.0f} |",
                flush=True,
            )


def measure(cell: Cell, first: int) -> dict[str, Any]:
    """Run a cell; return its returns and all facts needed to repeat it."""
    words = ["train", cell.algorithm, cell.env, "--seeds", str(cell.seeds)]
    words += ["--seed", str(first), "--json", *cell.options.split()]
    words += [] if cell.env_steps is None else ["--env-steps", str(cell.env_steps)]
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
        "margin": None if cell.seeds == 1 else round(margin, 3),  # one seed gives no margin
        "worst": round(float(returns.min()), 3),
        "seconds": result["seconds"]["total"],
    }


def with_margin(score: dict[str, Any]) -> str:
    """Return the mean with its margin."""
    margin = score["margin"]
    return f"{score['mean']:.1f} " + ("(one seed)" if margin is None else f"± {margin:.1f}")


def text_of(*command: str) -> str:
    """Return the output of a command run in the repository."""
    return subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
