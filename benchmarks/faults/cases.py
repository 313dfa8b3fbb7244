"""The healthy runs, and the runs that faults are put into. The split was fixed before any limit.

Limits come from CALIBRATION alone. Tuning looks at the faults of the families in TUNED, on the
environments of BASES. What is reported comes from HELD_OUT_HEALTHY, and from the families that are
not in TUNED on HELD_OUT_BASES.
"""

from collections.abc import Iterator
from typing import Any

import any_algorithm
import on_policy
import replay
import teaching
from fault import Case, Fault

SEEDS = 10
FAULTS: tuple[Fault, ...] = (*on_policy.FAULTS, *replay.FAULTS, *any_algorithm.FAULTS)

TUNED = frozenset(
    (
        *("policy-loss", "discount", "value-loss", "rate", "observations", "reward-none"),
        *("target-network", "replay-rows", "replay-rate", "paths", "initial"),
    )
)

BASES = (
    Case("ppo", "CartPole-v1", 60_000),
    Case("ppo", "Pendulum-v1", 150_000),
    Case("a2c", "CartPole-v1", 100_000),
    Case("dqn", "CartPole-v1", 30_000),
    Case("sac", "Pendulum-v1", 8_000),
    Case("td3", "Pendulum-v1", 8_000),
)
_SMALL_CRITICS = {"hidden": (64, 64), "batch_size": 64, "learning_starts": 1_000}
HELD_OUT_BASES = (
    Case("ppo", "Acrobot-v1", 100_000),
    Case("ppo", "dot", 100_000),
    Case("a2c", "Acrobot-v1", 200_000),
    Case("dqn", "Acrobot-v1", 30_000),
    # In place of `dot`, where TD3 has no actions to choose from; before any log of either existed.
    Case("sac", "InvertedPendulum-v5", 25_000, _SMALL_CRITICS),
    Case("td3", "InvertedPendulum-v5", 40_000, _SMALL_CRITICS),
    # For checks that were made with the misses of the two above in sight.
    Case("sac", "Reacher-v5", 20_000, _SMALL_CRITICS),
    Case("td3", "Reacher-v5", 20_000, _SMALL_CRITICS),
)


def _variants(base: Case, *changes: dict[str, Any]) -> Iterator[Case]:
    yield base
    for change in changes:
        yield Case(base.algorithm, base.env, base.env_steps, {**base.settings, **change})


_ON_POLICY = (
    {"learning_rate": 3e-4},
    {"normalize_obs": True, "normalize_rewards": True},
    {"normalize_obs": False, "normalize_rewards": False},
    {"discount": 0.98},
    {"entropy_coef": 0.01},
    {"hidden": (32,)},
)
# As `teach` trains robots on their own reward: the entropy bonus lets σ grow.
_ROBOT = {
    "num_envs": 64,
    "rollout_length": 64,
    "epochs": 8,
    "learning_rate_end": 1e-4,
    "discount": 0.98,
    "entropy_coef": 0.05,
    "entropy_coef_end": 0.02,
    "hidden": (32, 32),
}
# As `teach` trains robots with several actuators: late updates move a narrow policy far.
_JOINTS = {
    "num_envs": 32,
    "rollout_length": 64,
    "epochs": 8,
    "minibatches": 16,
    "learning_rate": 5e-4,
    "learning_rate_end": 5e-5,
    "entropy_coef": 0.003,
    "bound_mean": True,
    "noise_color": 0.5,
    "episode_steps": 250,
    "whole_share": 0.25,
}
CALIBRATION = (
    *_variants(BASES[0], *_ON_POLICY, {"epochs": 3}, {"num_envs": 16}),
    *_variants(BASES[1], *_ON_POLICY, {"num_envs": 16}),
    *_variants(BASES[2], *_ON_POLICY),
    *_variants(BASES[3], {"learning_rate": 1e-3}, {"hidden": (64, 64)}, {"batch_size": 64}),
    *_variants(BASES[4], {"critic_learning_rate": 3e-4}, {"discount": 0.98}),
    *_variants(BASES[5], {"critic_learning_rate": 3e-4}, {"discount": 0.98}),
    Case("ppo", "MinAtar/Breakout-v1", 100_000),
    Case("ppo", "MinAtar/Freeway-v1", 100_000),
    Case("ppo", "MountainCar-v0", 100_000),
    Case("ppo", "FrozenLake-v1", 60_000),
    Case("a2c", "MountainCar-v0", 100_000),
    Case("a2c", "FrozenLake-v1", 60_000),
    Case("a2c", "Pendulum-v1", 1_000_000),  # with 200,000 it ends worse than it begins
    Case("dqn", "MountainCar-v0", 30_000),
    Case("dqn", "FrozenLake-v1", 30_000),
    Case("ppo", "HalfCheetah-v5", 300_000),
    Case("ppo", "InvertedPendulum-v5", 200_000),
    Case("ppo", "Hopper-v5", 300_000),
    Case("a2c", "InvertedPendulum-v5", 200_000),
    Case("ppo", "fixed:InvertedPendulum-v5", 819_200, _ROBOT),
    Case("ppo", "Pusher-v5", 1_000_000, _JOINTS),
)
HELD_OUT_HEALTHY = (
    *_variants(
        HELD_OUT_BASES[0], {"learning_rate": 5e-4}, {"entropy_coef": 0.005}, {"num_envs": 16}
    ),
    *_variants(HELD_OUT_BASES[1], {"learning_rate": 5e-4}, {"hidden": (32, 32)}),
    *_variants(HELD_OUT_BASES[2], {"learning_rate": 5e-4}, {"num_envs": 16}),
    *_variants(HELD_OUT_BASES[3], {"learning_rate": 3e-4}),
    *_variants(HELD_OUT_BASES[4], {"discount": 0.98}),
    *_variants(HELD_OUT_BASES[5], {"discount": 0.98}),
    Case("ppo", "MinAtar/SpaceInvaders-v1", 100_000),
    Case("ppo", "MinAtar/Asterix-v1", 100_000),
    Case("ppo", "MountainCarContinuous-v0", 100_000),
    Case("a2c", "MountainCarContinuous-v0", 100_000),
    Case("ppo", "Walker2d-v5", 300_000),
    Case("ppo", "Reacher-v5", 200_000),
    Case("ppo", "Swimmer-v5", 300_000),
    Case("a2c", "Reacher-v5", 200_000),
    *HELD_OUT_BASES[6:8],
)

# Defaults in environments that a person knows, beside those of the calibration: what ENV-BELOW
# compares with. Their seeds are used nowhere else.
REFERENCE = (
    Case("ppo", "Acrobot-v1", 100_000),
    Case("a2c", "Acrobot-v1", 200_000),
    Case("dqn", "Acrobot-v1", 40_000),
    Case("a2c", "CartPole-v1", 400_000),
    Case("sac", "Pendulum-v1", 10_000),
    Case("td3", "Pendulum-v1", 10_000),
    Case("ddpg", "Pendulum-v1", 10_000),
    Case("sac", "InvertedPendulum-v5", 12_000),
    Case("td3", "InvertedPendulum-v5", 12_000),
    Case("ppo", "InvertedDoublePendulum-v5", 200_000),
    Case("sac", "InvertedDoublePendulum-v5", 15_000),
    Case("td3", "InvertedDoublePendulum-v5", 15_000),
    Case("ppo", "LunarLander-v3", 400_000),  # needs Box2D: gymnasium[box2d]
    Case("dqn", "LunarLander-v3", 120_000),
    Case("ppo", "Walker2d-v5", 500_000),
    Case("ppo", "MinAtar/Breakout-v1", 500_000),
    Case("sac", "HalfCheetah-v5", 30_000),
    Case("td3", "HalfCheetah-v5", 30_000),
    Case("sac", "Hopper-v5", 40_000),
    Case("sac", "Reacher-v5", 12_000),
    Case("td3", "Reacher-v5", 12_000),
)

# Sound runs of `teach`, by an oracle: the first for the limits, the others are reported.
TAUGHT_CALIBRATION = (
    Case("ppo", "dot", 100_000, labels=100),
    Case("ppo", "CartPole-v1", 100_000, labels=100),
    Case("ppo", "Pendulum-v1", 200_000, labels=100),
    Case("ppo", "dot", 50_000, labels=200),
    # A robot, with the settings for several actuators: a narrow policy moves further. Swimmer is
    # not here: one seed of ten lost nine tenths of what it had learned.
    Case("ppo", "Reacher-v5", 1_500_000, labels=100),
)
TAUGHT = (
    Case("ppo", "Acrobot-v1", 150_000, labels=150),
    Case("ppo", "MountainCarContinuous-v0", 100_000, labels=100),
    Case("ppo", "CartPole-v1", 60_000, labels=60),
)
TAUGHT_BASES = (TAUGHT[2], TAUGHT[0])

# These were held out until their first diagnosis showed that limits were too tight. Since then
# they belong to the calibration, and are not reported: PPO on dot, MountainCarContinuous, and SAC
# and TD3 on InvertedPendulum.
MOVED = (4, 5, 6, 12, 13, 14, 15, 18, 19)


def faulty() -> Iterator[tuple[Fault, Case]]:
    """Yield each fault with each base case of its algorithms that its split uses."""
    for fault in FAULTS:
        for case in BASES if fault.family in TUNED else HELD_OUT_BASES:
            if case.algorithm in fault.algorithms:
                yield fault, case


def faulty_teaching() -> Iterator[tuple[Fault, Case]]:
    """Yield each fault of teaching with each healthy run of `teach` that it is put into."""
    for fault in teaching.FAULTS:
        for case in TAUGHT_BASES:
            yield fault, case
