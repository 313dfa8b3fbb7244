"""SAC on HalfCheetah-v5 and Hopper-v5, one seed, against SBX; PPO's env steps/s with 64 of them.

    python benchmarks/mujoco_tasks.py [--pairs 1] [--only sac,ppo] [--updates 2048] [--quick]

SAC: 256 x 256, batch 256, one update per env step, in groups of 1 and of 32 (SBX's `train_freq` and
`gradient_steps`, our `rollout_length`), because SBX is faster in groups. The clock covers a
window after the warm-up, without compilation. PPO is compared with Gymnasium's vector environment,
stepped with random actions and without learning.
"""

import argparse
import json
import time
from typing import Any

import arithmetic
from driven import env_steps_per_second, gradient_steps_per_second
from side_by_side import Row, driven, in_turn, matmul_flops, peer, table

SIZES = {"HalfCheetah-v5": (17, 6), "Hopper-v5": (11, 3)}
WARM_UP, PPO_ENVS = 1_024, 64
SAC: dict[str, Any] = {
    "num_envs": 1,
    "updates_per_step": 1,
    "batch_size": 256,
    "buffer_size": 100_000,
    "learning_starts": WARM_UP,
    "hidden": (256, 256),
}
# By (epochs, minibatches): suited to many environments; usual for few environments.
PPO: dict[str, dict[str, Any]] = {
    "4 x 8": {"rollout_length": 64, "epochs": 4, "minibatches": 8},
    "10 x 32": {"rollout_length": 128, "epochs": 10, "minibatches": 32},
}


def sac_rows(env: str, group: int, options: argparse.Namespace, flops: float) -> Row:
    """Measure SAC on one environment against SBX."""
    obs, actions = SIZES[env]
    actor = arithmetic.weights(obs, 256, 256, 2 * actions)
    critic = arithmetic.weights(obs + actions, 256, 256, 1)
    ours = SAC | {"rollout_length": group, "env_steps": 1_000_000}
    theirs = {"learning_starts": WARM_UP, "train_freq": group, "gradient_steps": group}
    theirs |= {"buffer_size": 100_000, "policy_kwargs": {"net_arch": [256, 256]}}
    first = WARM_UP + options.updates // 2
    arguments = ["--env-steps", first + options.updates, "--window-from", first]
    arguments += ["--settings", json.dumps(theirs)]
    rollouts = ["--updates", options.updates // group // 2, "--phases", 2]
    measured = in_turn(
        options.pairs,
        lambda: gradient_steps_per_second(driven("sac", env, ours, *rollouts)),
        lambda: peer("sbx", "stable_baselines.py", "sbx", "sac", env, *arguments),
    )
    return Row(
        f"sac {env}: updates/s, in groups of {group}, SBX",
        [a for a, _ in measured],
        [b.output["env_steps_per_second"] for _, b in measured],
        max(flops, matmul_flops()) / arithmetic.sac(actor, critic, 256),
        bar=1.0,
    )


def ppo_row(passes: str, options: argparse.Namespace, flops: float) -> Row:
    """Measure PPO on HalfCheetah-v5 against Gymnasium's environments alone."""
    env, (obs, actions) = "HalfCheetah-v5", SIZES["HalfCheetah-v5"]
    weights = arithmetic.weights(obs, 64, 64, actions) + arithmetic.weights(obs, 64, 64, 1)
    settings = PPO[passes] | {"num_envs": PPO_ENVS, "env_steps": 10_000_000, "hidden": (64, 64)}
    rollouts = ["--updates", 1 if options.quick else 10, "--phases", 2]
    measured = in_turn(
        options.pairs,
        lambda: env_steps_per_second(driven("ppo", env, settings, *rollouts)),
        lambda: gymnasium_alone(env, options.seconds),
        lambda: driven("ppo", env, {"num_envs": PPO_ENVS}, "--bare", options.seconds),
    )
    peak = max(flops, matmul_flops())
    # Environments and learning take turns on all cores.
    bare = max(c["env_steps_per_second"] for *_, c in measured)
    limit = 1.0 / (1.0 / bare + arithmetic.ppo(weights, settings["epochs"]) / peak)
    return Row(
        f"ppo {env}: env steps/s, {PPO_ENVS} environments, {passes} minibatches; "
        "theirs: Gymnasium's without learning",
        [a for a, *_ in measured],
        [b for _, b, _ in measured],
        limit,
        floor=40_000,
    )


def gymnasium_alone(env: str, seconds: float) -> float:
    """Return env steps per second of Gymnasium's `SyncVectorEnv` with random actions."""
    import gymnasium  # noqa: PLC0415  (only where it is measured)
    import mujoco  # noqa: PLC0415

    mujoco.set_mju_user_warning(lambda _: None)  # suppress a warning per environment
    batch = gymnasium.make_vec(env, PPO_ENVS, vectorization_mode="sync")
    batch.reset(seed=0)
    action, steps, start = batch.action_space.sample(), 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        batch.step(action)
        steps += PPO_ENVS
    rate = steps / (time.perf_counter() - start)
    batch.close()
    return rate


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--only", default="sac,ppo", help="algorithms, with commas")
    parser.add_argument("--updates", type=int, default=2_048, help="of SAC in the window")
    parser.add_argument("--groups", default="1,32", help="env steps between rounds of updates")
    parser.add_argument("--seconds", type=float, default=5.0, help="of environments alone")
    parser.add_argument("--quick", action="store_true", help="few updates, to test the program")
    options = parser.parse_args()
    if options.quick:
        options.updates, options.seconds = 128, 0.5
    flops, rows, only = matmul_flops(), list[Row](), options.only.split(",")
    groups = [int(group) for group in options.groups.split(",")]
    if "sac" in only:
        rows += [sac_rows(env, group, options, flops) for env in SIZES for group in groups]
    if "ppo" in only:
        rows += [ppo_row(passes, options, flops) for passes in PPO]
    table(f"MuJoCo, one seed; {options.updates:,} updates of SAC; {options.pairs} in turn", rows)
    print(f"limit: matrix products of 512 x 512 on all cores, {flops / 1e9:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
