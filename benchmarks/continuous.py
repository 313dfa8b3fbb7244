"""DDPG, TD3 and SAC on Pendulum-v1: our ten seeds against one of SB3 and one of SBX.

    python benchmarks/continuous.py [--pairs 1] [--only ddpg,td3,sac] [--quick]
        [--hidden 64,64] [--batch-size 256] [--train-freq 64]

Networks, batch, learning rate, discount, warm-up, noise and updates per env step are equal for
all: those of SB3's zoo, except for the networks, which are 400 x 300 there, 256 x 256 for SAC. With
those, SB3 too spends nearly all its time on matrix products, and no program could be ten times as
fast: the last column shows the largest possible ratio. Updates come in groups of `--train-freq`, as
many as env steps before them. The zoo uses groups of 1, with which SBX is slower. Measured are
whole processes, ours with evaluation and a warm compilation cache, the peers' without, and the
rate after the warm-up.
"""

import argparse
import json
from typing import Any

import arithmetic
from side_by_side import (
    Row,
    Timed,
    in_turn,
    matmul_flops,
    peer,
    rate,
    returns_in_words,
    table,
    train,
)

ENV, SEEDS, OBS, ACTIONS = "Pendulum-v1", 10, 3, 1
BARS = {"sb3": 10.0, "sbx": 3.0}
# Settings of the zoo for each: warm-up, discount, noise on actions.
ZOO: dict[str, dict[str, Any]] = {
    "ddpg": {"learning_starts": 10_000, "discount": 0.98, "noise": 0.1},
    "td3": {"learning_starts": 10_000, "discount": 0.98, "noise": 0.1},
    "sac": {"learning_starts": 256, "discount": 0.99},
}
LEARNING_RATE, BUFFER = 1e-3, 200_000


def our_settings(algorithm: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return our settings."""
    zoo = ZOO[algorithm]
    settings: dict[str, Any] = {
        "env_steps": options.env_steps,
        "num_envs": 1,
        "rollout_length": options.train_freq,
        "updates_per_step": 1,
        "batch_size": options.batch_size,
        "buffer_size": BUFFER,
        "learning_starts": warm_up(algorithm, options),
        "discount": zoo["discount"],
        "actor_learning_rate": LEARNING_RATE,
        "critic_learning_rate": LEARNING_RATE,
        "hidden": options.hidden,
    }
    if "noise" in zoo:
        settings["exploration_noise"] = zoo["noise"]
    else:
        settings["temperature_learning_rate"] = LEARNING_RATE
    return settings


def their_settings(algorithm: str, library: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the same settings with the names of SB3 and SBX."""
    zoo = ZOO[algorithm]
    settings: dict[str, Any] = {
        "learning_rate": LEARNING_RATE,
        "batch_size": options.batch_size,
        "buffer_size": BUFFER,
        "learning_starts": warm_up(algorithm, options),
        "gamma": zoo["discount"],
        "train_freq": options.train_freq,
        "gradient_steps": options.train_freq,
        "policy_kwargs": {"net_arch": list(options.hidden)},
    }
    if library == "sbx":
        settings["qf_learning_rate"] = LEARNING_RATE
    return settings | ({"noise_std": zoo["noise"]} if "noise" in zoo else {})


def warm_up(algorithm: str, options: argparse.Namespace) -> int:
    """Return the env steps before the first update: whole groups, at most about half of all."""
    wanted = min(ZOO[algorithm]["learning_starts"], options.env_steps // 2)
    return -(-wanted // options.train_freq) * options.train_freq


def theirs(library: str, algorithm: str, options: argparse.Namespace) -> Timed:
    """Run a peer's whole process for one seed; its rate does not include compilation."""
    arguments = ["--env-steps", options.env_steps, "--episodes", 100]
    arguments += ["--window-from", warm_up(algorithm, options) + options.env_steps // 20]
    arguments += ["--threads", options.threads]
    arguments += ["--settings", json.dumps(their_settings(algorithm, library, options))]
    return peer(library, "stable_baselines.py", library, algorithm, ENV, *arguments)


def flops_per_update(algorithm: str, options: argparse.Namespace) -> float:
    """Return the arithmetic of one gradient step, equal to one env step."""
    outputs = 2 * ACTIONS if algorithm == "sac" else ACTIONS
    actor = arithmetic.weights(OBS, *options.hidden, outputs)
    critic = arithmetic.weights(OBS + ACTIONS, *options.hidden, 1)
    return getattr(arithmetic, algorithm)(actor, critic, options.batch_size)


def compared(
    algorithm: str, options: argparse.Namespace, flops: float
) -> tuple[list[Row], list[str]]:
    """Measure one algorithm against both peers."""

    def ours() -> Timed:
        settings = our_settings(algorithm, options)
        return train(algorithm, ENV, seeds=SEEDS, first=options.seed, settings=settings)

    ours()  # fills our compilation cache
    libraries = options.peers.split(",")
    peers = [lambda name=name: theirs(name, algorithm, options) for name in libraries]
    measured = in_turn(options.pairs, ours, *peers)
    whole = [3600 * SEEDS / run[0].seconds for run in measured]
    rates = [rate(run[0].output, warm_up(algorithm, options)) for run in measured]
    rows: list[Row] = []
    notes = [f"{algorithm}: {returns_in_words('ours', measured[-1][0].output['returns'])}"]
    limit = max(flops, matmul_flops()) / flops_per_update(algorithm, options)
    for place, name in enumerate(libraries, 1):
        runs = [run[place] for run in measured]
        seconds = [run.seconds - run.output["evaluate_seconds"] for run in runs]
        rows += [
            Row(
                f"{algorithm}: seeds an hour, whole processes, {name.upper()}",
                whole,
                [3600 / x for x in seconds],
                bar=BARS[name],
            ),
            Row(
                f"{algorithm}: updates/s, {name.upper()}",
                rates,
                [run.output["env_steps_per_second"] for run in runs],
                limit,
            ),
        ]
        returned = [run.output["return"] for run in runs]
        notes.append(f"{algorithm}: {returns_in_words(name.upper(), returned)}")
    return rows, notes


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--only", default="ddpg,td3,sac", help="algorithms, with commas")
    parser.add_argument("--peers", default="sb3,sbx", help="peers, with commas")
    parser.add_argument("--env-steps", type=int, default=20_000)
    parser.add_argument("--hidden", type=sizes, default=(64, 64))
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--train-freq", type=int, default=64, help="env steps between updates")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's")
    parser.add_argument("--seed", type=int, default=100, help="our first seed")
    parser.add_argument("--quick", action="store_true", help="few env steps, to test the program")
    options = parser.parse_args()
    if options.quick:
        options.env_steps = 1_000
    flops = matmul_flops()
    rows: list[Row] = []
    notes: list[str] = []
    for algorithm in options.only.split(","):
        more, said = compared(algorithm, options, flops)
        rows += more
        notes += said
    nets = f"{'x'.join(map(str, options.hidden))}, batch {options.batch_size}"
    table(f"{ENV}, {options.env_steps:,} env steps, {nets}: our {SEEDS} seeds, their one", rows)
    print(*notes, sep="\n")


def sizes(text: str) -> tuple[int, ...]:
    """Parse comma-separated widths."""
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    main()
