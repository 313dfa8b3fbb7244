"""PPO, A2C and DQN on CartPole-v1: our ten seeds against SB3's one, and against rejax's ten.

    python benchmarks/classic.py [--pairs 1] [--only ppo,a2c,dqn] [--quick]

All use the settings of SB3's zoo. Ours are whole processes, evaluation included, with a warm
compilation cache: the first run is not counted. SB3 runs with one thread, which is fastest for
such small networks, and its evaluation is not counted. Compilation is not counted for rejax.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
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

ENV, SEEDS = "CartPole-v1", 10
TWO_NETS = arithmetic.weights(4, 64, 64, 2) + arithmetic.weights(4, 64, 64, 1)
Q_NET = arithmetic.weights(4, 256, 256, 2)
CLEANRL = (
    "CleanRL: not measured. Its package, cleanrl 1.2.0, says Requires-Python >=3.7.1,<3.11 and pins"
    " gym 0.23.1 and stable-baselines3 1.2.0: pip installs it under none of the Pythons we support."
)


@dataclass(frozen=True)
class Cell:
    """One algorithm with the settings of the zoo.

    Attributes:
        name: the algorithm's name in both.
        env_steps: per seed.
        quick: env steps per seed with `--quick`.
        learning_starts: env steps before learning starts.
        ours: our settings.
        sb3: settings of SB3.
        sb3_envs: number of parallel environments of SB3.
        flops: multiplications and additions of one env step.
    """

    name: str
    env_steps: int
    quick: int
    learning_starts: int
    ours: dict[str, Any]
    sb3: dict[str, Any]
    sb3_envs: int
    flops: float


CELLS = (
    Cell(
        "ppo",
        env_steps=100_000,
        quick=10_240,
        learning_starts=0,
        ours={
            "num_envs": 8,
            "rollout_length": 32,
            "epochs": 20,
            "advantage_floor": 0,  # a departure that the zoo does not have
        },
        sb3={
            "n_steps": 32,
            "batch_size": 256,
            "n_epochs": 20,
            "gamma": 0.98,
            "gae_lambda": 0.8,
            "ent_coef": 0.0,
            "learning_rate": "lin_1e-3",
            "clip_range": "lin_0.2",
        },
        sb3_envs=8,
        flops=arithmetic.ppo(TWO_NETS, epochs=20),
    ),
    Cell(
        "a2c",
        env_steps=500_000,
        quick=4_000,
        learning_starts=0,
        ours={
            "num_envs": 8,
            "rollout_length": 5,
            "entropy_coef": 0.0,
            "learning_rate": 7e-4,
            "learning_rate_end": 7e-4,
        },
        sb3={"n_steps": 5, "ent_coef": 0.0},
        sb3_envs=8,
        flops=arithmetic.a2c(TWO_NETS),
    ),
    Cell(
        "dqn",
        env_steps=50_000,
        quick=2_048,
        learning_starts=1_024,
        ours={
            "num_envs": 8,
            "rollout_length": 32,
            "updates_per_step": 0.5,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1_024,
            "learning_rate": 2.3e-3,
            "target_update_interval": 256,
            "epsilon_steps": 8_000,
            "epsilon_end": 0.04,
            "double": False,
            "hidden": (256, 256),
        },
        sb3={
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1_000,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
        sb3_envs=1,
        flops=arithmetic.dqn(Q_NET, batch_size=64, updates_per_step=0.5),
    ),
)
REJAX_PPO = {
    "agent_kwargs": {"hidden_layer_sizes": [64, 64], "activation": "tanh"},
    "num_envs": 8,
    "num_steps": 32,
    "num_minibatches": 1,
    "num_epochs": 20,
    "learning_rate": 1e-3,
    "gamma": 0.98,
    "gae_lambda": 0.8,
    "clip_eps": 0.2,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
# It steps every environment once between two rounds of updates: 256 make the zoo's `train_freq`.
REJAX_DQN = {
    "num_envs": 256,
    "num_epochs": 128,
    "fill_buffer": 1_000,
    "batch_size": 64,
    "buffer_size": 1_000_000,
    "learning_rate": 2.3e-3,
    "target_update_freq": 256,
    "polyak": 0.0,
    "ddqn": False,
    "exploration_fraction": 0.16,
    "eps_end": 0.04,
}


def ours(cell: Cell, env_steps: int, first: int, **more: Any) -> Timed:
    """Run our whole process for ten seeds."""
    settings = {**cell.ours, "env_steps": env_steps, **more}
    return train(cell.name, ENV, seeds=SEEDS, first=first, settings=settings)


def sb3(cell: Cell, env_steps: int, threads: int) -> Timed:
    """Run SB3's whole process for one seed."""
    arguments = ["--env-steps", env_steps, "--num-envs", cell.sb3_envs, "--episodes", 100]
    arguments += ["--window-from", cell.learning_starts, "--threads", threads]
    arguments += ["--settings", json.dumps(cell.sb3)]
    return peer("sb3", "stable_baselines.py", "sb3", cell.name, ENV, *arguments)


def against_sb3(
    cell: Cell, options: argparse.Namespace, flops: float
) -> tuple[list[Row], list[str]]:
    """Measure one algorithm against SB3."""
    env_steps = cell.quick if options.quick else cell.env_steps
    ours(cell, env_steps, options.seed)  # fills our compilation cache
    measured = in_turn(
        options.pairs,
        lambda: ours(cell, env_steps, options.seed),
        lambda: sb3(cell, env_steps, options.threads),
    )
    rows = [
        Row(
            f"{cell.name}: seeds an hour, whole processes, SB3",
            [3600 * SEEDS / a.seconds for a, _ in measured],
            [3600 / (b.seconds - b.output["evaluate_seconds"]) for _, b in measured],
            bar=20,
        ),
        Row(
            f"{cell.name}: env steps/s in training, SB3",
            [rate(a.output, cell.learning_starts) for a, _ in measured],
            [b.output["env_steps_per_second"] for _, b in measured],
            max(flops, matmul_flops()) / cell.flops,
        ),
    ]
    notes = [
        f"{cell.name}, {env_steps:,} env steps: "
        + returns_in_words("ours", measured[-1][0].output["returns"]),
        f"{cell.name}: {returns_in_words('SB3', [b.output['return'] for _, b in measured])}",
    ]
    return rows, notes


def against_rejax_ppo(options: argparse.Namespace, flops: float) -> tuple[list[Row], list[str]]:
    """Measure PPO against rejax."""
    cell = CELLS[0]
    env_steps = cell.quick if options.quick else cell.env_steps
    measured = in_turn(
        options.pairs,
        lambda: ours(cell, env_steps, options.seed),
        lambda: rejax("ppo", REJAX_PPO, env_steps, "--evaluate", "--repeats", 3),
    )
    rates = ([rate(a.output) for a, _ in measured], [rejax_rate(b) for _, b in measured])
    limit = max(flops, matmul_flops()) / cell.flops
    row = Row("ppo: env steps/s in training, rejax", *rates, limit, bar=1.5)
    return [row], [f"ppo: {returns_in_words('rejax', measured[-1][1].output['returns'])}"]


def against_rejax_dqn(options: argparse.Namespace, flops: float) -> tuple[list[Row], list[str]]:
    """Measure DQN with a buffer of a million against rejax, after learning starts."""
    cell, warm = CELLS[2], 1_280  # its first rounds, which only fill the buffer
    env_steps = cell.quick if options.quick else 20_480
    measured = in_turn(
        options.pairs,
        lambda: ours(cell, env_steps, options.seed, buffer_size=1_000_000),
        lambda: rejax(
            "dqn",
            REJAX_DQN,
            warm + 256 * options.rounds,
            "--steady-from",
            warm,
            "--q-hidden",
            256,
            256,
        ),
    )
    ours_rate = [rate(a.output, cell.learning_starts) for a, _ in measured]
    what = "dqn: env steps/s in training, buffer of 1M, rejax"
    theirs = [rejax_rate(b) for _, b in measured]
    limit = max(flops, matmul_flops()) / cell.flops
    return [Row(what, ours_rate, theirs, limit, bar=10)], []


def rejax(algorithm: str, settings: dict[str, Any], env_steps: int, *more: object) -> Timed:
    """Run rejax for ten seeds."""
    arguments = ["--env-steps", env_steps, "--seeds", SEEDS, "--settings", json.dumps(settings)]
    return peer("rejax", "rejax_train.py", algorithm, ENV, *arguments, *more)


def rejax_rate(timed: Timed) -> float:
    """Return env steps per second of all seeds, without compilation."""
    return timed.output["env_steps_per_second"]


def compared(options: argparse.Namespace, flops: float) -> Iterator[tuple[list[Row], list[str]]]:
    """Measure the chosen algorithms in turn; yield rows and notes of each."""
    only, peers = options.only.split(","), options.peers.split(",")
    for cell in CELLS:
        if "sb3" in peers and cell.name in only:
            yield against_sb3(cell, options, flops)
    if "rejax" in peers and "ppo" in only:
        yield against_rejax_ppo(options, flops)
    if "rejax" in peers and "dqn" in only:
        yield against_rejax_dqn(options, flops)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--only", default="ppo,a2c,dqn", help="algorithms, with commas")
    parser.add_argument("--peers", default="sb3,rejax", help="peers, with commas")
    parser.add_argument("--seed", type=int, default=100, help="our first seed")
    parser.add_argument("--threads", type=int, default=1, help="SB3's")
    parser.add_argument("--rounds", type=int, default=2, help="of rejax's DQN, 128 updates each")
    parser.add_argument("--quick", action="store_true", help="few env steps, to test the program")
    options = parser.parse_args()
    rows: list[Row] = []
    notes: list[str] = []
    for more, said in compared(options, matmul_flops()):
        rows += more
        notes += said
    table(f"{ENV}: our {SEEDS} seeds, SB3's one, rejax's {SEEDS}; {options.pairs} in turn", rows)
    print(*notes, CLEANRL, sep="\n")


if __name__ == "__main__":
    main()
