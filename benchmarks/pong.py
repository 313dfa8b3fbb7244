"""PPO with the Nature network on ALE/Pong-v5: env steps per second against a loop in PyTorch.

    python benchmarks/pong.py [--pairs 2] [--quick]

Both use ale-py's vector environment with the same batches: 8 games x 128 env steps, 4 epochs
of 4 minibatches. The clock starts after a first round, without compilation. Two cores each.
"""

import argparse
from typing import Any

import arithmetic
from driven import env_steps_per_second, pair
from side_by_side import Row, driven, in_turn, matmul_flops, peer, table

ENV, ACTIONS, EPOCHS = "ALE/Pong-v5", 6, 4
SETTINGS: dict[str, Any] = {
    "num_envs": 8,
    "rollout_length": 128,
    "epochs": EPOCHS,
    "minibatches": 4,
    "learning_rate": 2.5e-4,
    "learning_rate_end": 2.5e-4,
    "clip_range": 0.1,
    "clip_range_end": 0.1,
    "discount": 0.99,
    "gae_lambda": 0.95,
}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12, help="of 1,024 env steps, counted")
    parser.add_argument("--threads", type=int, default=2, help="PyTorch's and ALE's")
    parser.add_argument("--seconds", type=float, default=5.0, help="of the games alone")
    parser.add_argument(
        "--set",
        type=pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of ours, instead of network=nature",
    )
    parser.add_argument("--quick", action="store_true", help="short rollouts, to test the program")
    options = parser.parse_args()
    settings = SETTINGS | (dict(options.set) or {"network": "nature"})
    if options.quick:
        options.rounds, options.seconds, settings["rollout_length"] = 2, 0.5, 16
    rounds = max(options.rounds // 2, 1)
    theirs = ["--num-envs", settings["num_envs"], "--rollout-length", settings["rollout_length"]]
    theirs += ["--iterations", 2 * rounds, "--threads", options.threads]
    flops = matmul_flops()
    measured = in_turn(
        options.pairs,
        lambda: driven("ppo", ENV, settings, "--updates", rounds, "--phases", 2),
        lambda: peer("torch", "torch_pong.py", *theirs).output,
        lambda: driven("ppo", ENV, settings, "--bare", options.seconds),
    )
    # Games and learning take turns on all cores; the first layer needs no gradient of its input.
    forward, first = arithmetic.nature(ACTIONS)
    learning = (arithmetic.ppo(forward, EPOCHS) - 2 * EPOCHS * first) / max(flops, matmul_flops())
    bare = max(c["env_steps_per_second"] for *_, c in measured)
    row = Row(
        "ppo, Nature network: env steps/s",
        [env_steps_per_second(a) for a, *_ in measured],
        [b["env_steps_per_second"] for _, b, _ in measured],
        1.0 / (1.0 / bare + learning),
        bar=1.0,
    )
    table(f"{ENV}, one seed, against PyTorch 2.13; {options.pairs} in turn", [row])
    print(f"the games alone, random actions: {bare:,.0f} env steps/s")


if __name__ == "__main__":
    main()
