"""DQN and PPO on MinAtar's Breakout, ten seeds in one program, against rejax with gymnax.

    python benchmarks/minatar.py [--pairs 1] [--only ppo,dqn] [--quick]

The same settings, the same game (gymnax's has no sticky actions and a time limit of 1,000), and
the same networks: MinAtar's (16 3x3 convolutions, 128 units), and rejax's own layers of 64 and 64,
a fifth of the arithmetic. rejax has one for the policy and one for the value, ours are two heads.
Env steps per second of training, without compilation. With convolutions rejax runs fewer env steps,
because each takes much longer: `vmap` turns them into grouped convolutions, for which XLA has no
fast code on a CPU.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import arithmetic
from side_by_side import Row, in_turn, matmul_flops, peer, rate, returns_in_words, table, train

ENV, THEIRS, SEEDS, CHANNELS, ACTIONS = "MinAtar/Breakout-v1", "Breakout-MinAtar", 10, 4, 3
GAME = {"sticky": 0.0, "max_episode_steps": 1_000}
WARM_UP, BATCH, RATIO = 5_120, 32, 0.25
OURS: dict[str, dict[str, Any]] = {
    "ppo": {
        "num_envs": 64,
        "rollout_length": 32,
        "epochs": 4,
        "minibatches": 8,
        "learning_rate": 1e-3,
        "learning_rate_end": 1e-3,
        "discount": 0.99,
        "gae_lambda": 0.95,
        "clip_range": 0.2,
        "clip_range_end": 0.2,
        "entropy_coef": 0.01,
        "entropy_coef_end": 0.01,
    },
    "dqn": {
        "num_envs": 8,
        "rollout_length": 8,
        "updates_per_step": RATIO,
        "batch_size": BATCH,
        "buffer_size": 100_000,
        "learning_starts": WARM_UP,
        "learning_rate": 2.5e-4,
        "target_update_interval": 1_024,
        "epsilon_steps": 20_000,
        "epsilon_end": 0.1,
        "double": False,
    },
}
REJAX: dict[str, dict[str, Any]] = {
    "ppo": {
        "num_envs": 64,
        "num_steps": 32,
        "num_epochs": 4,
        "num_minibatches": 8,
        "learning_rate": 1e-3,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_eps": 0.2,
        "ent_coef": 0.01,
        "max_grad_norm": 0.5,
    },
    # 64 environments, each stepped once between rounds of 16 updates.
    "dqn": {
        "num_envs": 64,
        "num_epochs": 16,
        "batch_size": BATCH,
        "buffer_size": 100_000,
        "fill_buffer": WARM_UP,
        "learning_rate": 2.5e-4,
        "target_update_freq": 1_024,
        "polyak": 0.0,
        "exploration_fraction": 0.4,
        "eps_end": 0.1,
        "ddqn": False,
    },
}
ENV_STEPS = {"ppo": 102_400, "dqn": 25_600}
QUICK = {"ppo": 4_096, "dqn": 6_400}


class Network(NamedTuple):
    """A network that both programs have.

    Attributes:
        name: the network's name.
        ours: our settings for it.
        rejax: its name in rejax.
        forward: (heads) -> multiplications forward, and those of the first layer.
        their_env_steps: env steps per seed of rejax, by algorithm.
    """

    name: str
    ours: dict[str, Any]
    rejax: tuple[str, ...]
    forward: Callable[[int], tuple[int, int]]
    their_env_steps: dict[str, int]


def layers(heads: int) -> tuple[int, int]:
    """Return the multiplications of layers of 64 and 64, and of the first."""
    return arithmetic.weights(10 * 10 * CHANNELS, 64, 64, heads), 10 * 10 * CHANNELS * 64


NETWORKS = (
    Network(
        "convolutions",
        {"network": "grid"},
        ("--conv",),
        partial(arithmetic.minatar, CHANNELS),
        {"ppo": 10_240, "dqn": 7_680},
    ),
    Network("layers", {"network": "flat", "hidden": [64, 64]}, (), layers, ENV_STEPS),
)


def flops_per_env_step(algorithm: str, network: Network) -> float:
    """Return the arithmetic of one env step; the first layer needs no gradient of its input."""
    forward, first = network.forward(ACTIONS + 1 if algorithm == "ppo" else ACTIONS)
    if algorithm == "ppo":
        epochs = OURS["ppo"]["epochs"]
        return arithmetic.ppo(forward, epochs) - 2 * epochs * first
    return arithmetic.dqn(forward, BATCH, RATIO) - 2 * RATIO * BATCH * first


def compared(
    algorithm: str, network: Network, options: argparse.Namespace, flops: float
) -> tuple[Row, str]:
    """Measure one algorithm with one network."""
    env_steps = (QUICK if options.quick else ENV_STEPS)[algorithm]
    warm_up = OURS[algorithm].get("learning_starts", 0)
    settings = OURS[algorithm] | network.ours | {"env_steps": env_steps}
    few = (QUICK if options.quick else network.their_env_steps)[algorithm]
    arguments = ["--env-steps", few, "--seeds", SEEDS, "--settings", json.dumps(REJAX[algorithm])]
    arguments += ["--steady-from", warm_up] if warm_up else []
    first = options.seed
    measured = in_turn(
        options.pairs,
        lambda: (
            train(algorithm, ENV, seeds=SEEDS, first=first, settings=settings, env_args=GAME).output
        ),
        lambda: rejax(algorithm, *network.rejax, *arguments),
    )
    row = Row(
        f"{algorithm}, {network.name}: env steps/s in training, {env_steps:,} of a seed, rejax "
        f"{few:,}",
        [rate(ours, warm_up) for ours, _ in measured],
        [theirs["env_steps_per_second"] for _, theirs in measured],
        max(flops, matmul_flops()) / flops_per_env_step(algorithm, network),
        bar=1.5,
    )
    ours, _ = measured[-1]
    return row, f"{algorithm}, {network.name}: {returns_in_words('ours', ours['returns'])}"


def rejax(algorithm: str, *arguments: Any) -> dict[str, Any]:
    """Return the rate that rejax measured."""
    return peer("rejax", "rejax_train.py", algorithm, THEIRS, *arguments).output


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--only", default="ppo,dqn", help="algorithms, with commas")
    parser.add_argument("--seed", type=int, default=100, help="our first seed")
    parser.add_argument("--quick", action="store_true", help="few env steps, to test the program")
    options = parser.parse_args()
    flops, rows, notes = matmul_flops(), list[Row](), list[str]()
    for algorithm, network in product(options.only.split(","), NETWORKS):
        row, said = compared(algorithm, network, options, flops)
        rows.append(row)
        notes.append(said)
    table(f"{ENV}: {SEEDS} seeds, rejax 0.1.3 with gymnax 0.0.9; {options.pairs} in turn", rows)
    print(*notes, sep="\n")


if __name__ == "__main__":
    main()
