"""The training runs of Stable-Baselines3, and the faults that are put into them.

Families and true causes were written down before any log was diagnosed. `sb3_breaks.py` holds what
is no setting. Nothing is imported here, so that our environment and that of the peer read one list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SEEDS = 5
# Before the name of a healthy training run: other seeds, for the limits.
CALIBRATION = "calibration-"
FIRST_OF_CALIBRATION = 100
FIRST_OF_DEFAULTS, SEEDS_OF_DEFAULTS = 200, 10
HELD_OUT_ENV = "Acrobot-v1"  # no limit comes from it


@dataclass(frozen=True)
class Training:
    """An algorithm of Stable-Baselines3 on an environment, with a budget in which it learns.

    Attributes:
        name: its name; a fault is named `FAULT@NAME`.
        algorithm: the class of Stable-Baselines3.
        env: the id of the environment.
        env_steps: the budget.
        num_envs: environments that run side by side.
        log_interval: rollouts or episodes between two lines of `progress.csv`.
        settings: arguments of the class.
        every: env steps between two lines of the callback, for algorithms with a replay.
    """

    name: str
    algorithm: str
    env: str
    env_steps: int
    num_envs: int = 1
    log_interval: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    every: int = 1_000


@dataclass(frozen=True)
class Fault:
    """One change that breaks a training run.

    Attributes:
        name: its name.
        family: faults of one family have one kind of cause.
        causes: ids of the causes that name it; the first is the truest.
        trainings: names of the training runs that it is put into.
        settings: the change as settings of Stable-Baselines3.
        breaks: the change as an entry of `sb3_breaks.BREAKS`; empty if the settings are all of it.
    """

    name: str
    family: str
    causes: tuple[str, ...]
    trainings: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    breaks: str = ""


# Settings are those of rl-zoo, with shorter rollouts so that a short budget holds enough updates.
_PPO = Training(
    "ppo-CartPole",
    "PPO",
    "CartPole-v1",
    30_000,
    num_envs=8,
    settings={
        "n_steps": 32,
        "batch_size": 256,
        "n_epochs": 20,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "learning_rate": 1e-3,
        "clip_range": 0.2,
        "ent_coef": 0.0,
    },
)
_PPO_ACROBOT = Training(
    "ppo-Acrobot",
    "PPO",
    "Acrobot-v1",
    80_000,
    num_envs=16,
    settings={"n_steps": 64, "batch_size": 128, "n_epochs": 4, "gamma": 0.99, "gae_lambda": 0.94},
)
_A2C = Training("a2c-Acrobot", "A2C", "Acrobot-v1", 60_000, num_envs=16, log_interval=10)
_DQN = Training(
    "dqn-CartPole",
    "DQN",
    "CartPole-v1",
    20_000,
    log_interval=4,
    settings={
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "gamma": 0.99,
        "learning_starts": 1_000,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [64, 64]},
    },
)
_SMALL: Mapping[str, Any] = {"learning_rate": 1e-3, "policy_kwargs": {"net_arch": [64, 64]}}
_SAC = Training("sac-Pendulum", "SAC", "Pendulum-v1", 4_000, settings=_SMALL, every=100)
_TD3 = Training(
    "td3-Pendulum", "TD3", "Pendulum-v1", 6_000, settings={**_SMALL, "noise_std": 0.1}, every=100
)
BASES = (_PPO, _PPO_ACROBOT, _A2C, _DQN, _SAC, _TD3)

# Healthy, and without faults: other settings, and the examples of Stable-Baselines3's own pages.
HEALTHY = (
    *BASES,
    Training(
        "ppo-Pendulum",
        "PPO",
        "Pendulum-v1",
        60_000,
        num_envs=4,
        settings={"n_steps": 512, "gamma": 0.9, "learning_rate": 1e-3},
    ),
    Training("a2c-CartPole", "A2C", "CartPole-v1", 60_000, num_envs=8, log_interval=10),
    Training("example-ppo", "PPO", "CartPole-v1", 25_000, num_envs=4),
    Training("example-a2c", "A2C", "CartPole-v1", 25_000, num_envs=4, log_interval=100),
    Training("example-dqn", "DQN", "CartPole-v1", 10_000, log_interval=4),
    Training("example-sac", "SAC", "Pendulum-v1", 10_000, log_interval=4),
)

# What ENV-BELOW compares with: the library's own defaults, where all seeds learn with them.
DEFAULTS = (
    Training("default-ppo-CartPole", "PPO", "CartPole-v1", 60_000, num_envs=4),
    Training("default-a2c-CartPole", "A2C", "CartPole-v1", 120_000, num_envs=8, log_interval=10),
    Training("default-a2c-Acrobot", "A2C", "Acrobot-v1", 200_000, num_envs=16, log_interval=10),
    Training("default-ppo-Acrobot", "PPO", "Acrobot-v1", 120_000, num_envs=4),
    Training("default-sac-Pendulum", "SAC", "Pendulum-v1", 8_000, every=100),
    Training("default-td3-Pendulum", "TD3", "Pendulum-v1", 8_000, every=100),
    Training("default-ppo-InvertedPendulum", "PPO", "InvertedPendulum-v5", 80_000, num_envs=4),
    Training("default-ppo-LunarLander", "PPO", "LunarLander-v3", 500_000, num_envs=8),
)

_CARTPOLE, _ACROBOT, _ACTOR_CRITIC = "ppo-CartPole", "ppo-Acrobot", "a2c-Acrobot"
_Q, _S, _T = "dqn-CartPole", "sac-Pendulum", "td3-Pendulum"

FAULTS = (
    Fault(
        "rate-high",
        "rate",
        ("steps-too-large",),
        (_CARTPOLE, _ACTOR_CRITIC, _Q, _S, _T),
        settings={"learning_rate": 0.1},
    ),
    Fault(
        "rate-tiny", "rate", ("steps-too-small",), (_CARTPOLE,), settings={"learning_rate": 1e-7}
    ),
    Fault(
        "no-clip-high-rate",
        "rate",
        ("steps-too-large",),
        (_ACROBOT,),
        settings={"clip_range": 1e6, "learning_rate": 0.03},
    ),
    Fault(
        "entropy-huge",
        "entropy",
        ("entropy-bonus",),
        (_CARTPOLE, _ACTOR_CRITIC),
        settings={"ent_coef": 1.0},
    ),
    Fault(
        "entropy-sign",
        "entropy",
        ("too-little-exploration", "entropy-bonus"),
        (_ACROBOT,),
        settings={"ent_coef": -0.3},
    ),
    Fault("temperature-fixed", "temperature", ("temperature",), (_S,), settings={"ent_coef": 10.0}),
    Fault(
        "discount-zero",
        "discount",
        ("discount", "value-targets"),
        (_CARTPOLE, _T),
        settings={"gamma": 0.0},
    ),
    Fault(
        "obs-tiny", "observations", ("observations",), (_CARTPOLE, _ACTOR_CRITIC), breaks="obs-tiny"
    ),
    Fault("obs-zero", "observations", ("observations",), (_ACROBOT, _T), breaks="obs-zero"),
    Fault(
        "obs-scaled-in-learning-only",
        "paths",
        ("acting-and-learning-disagree", "observations"),
        (_Q, _T),
        breaks="obs-scaled-in-learning-only",
    ),
    Fault(
        "reward-negated",
        "reward-sign",
        ("reward-sign", "policy-loss"),
        (_CARTPOLE, _ACTOR_CRITIC, _Q, _S, _T),
        breaks="reward-negated",
    ),
    Fault("reward-zero", "reward-none", ("no-reward-signal",), (_ACROBOT,), breaks="reward-zero"),
    Fault("reward-huge", "reward-scale", ("reward-scale",), (_CARTPOLE, _Q), breaks="reward-huge"),
    Fault(
        "actions-stuck",
        "actions",
        ("actions", "too-little-exploration"),
        (_ACROBOT, _T),
        breaks="actions-stuck",
    ),
    Fault(
        "actions-of-others",
        "actions",
        ("actions", "acting-and-learning-disagree"),
        (_CARTPOLE, _ACTOR_CRITIC),
        breaks="actions-of-others",
    ),
    Fault(
        "dropout",
        "paths",
        ("acting-and-learning-disagree",),
        (_CARTPOLE,),
        breaks="dropout",
    ),
    Fault(
        "log-probs-of-others",
        "paths",
        ("acting-and-learning-disagree",),
        (_CARTPOLE,),
        breaks="log-probs-of-others",
    ),
    Fault(
        "advantages-shuffled",
        "advantages",
        ("advantages",),
        (_CARTPOLE, _ACROBOT, _ACTOR_CRITIC),
        breaks="advantages-shuffled",
    ),
    Fault(
        "policy-loss-negated",
        "policy-loss",
        ("policy-loss", "advantages"),
        (_CARTPOLE, _ACROBOT),
        breaks="policy-loss-negated",
    ),
    Fault("policy-frozen", "policy-loss", ("policy-loss",), (_CARTPOLE,), breaks="policy-frozen"),
    Fault(
        "policy-never-updated",
        "policy-loss",
        ("policy-loss",),
        (_T,),
        settings={"policy_delay": 10**9},
    ),
    Fault(
        "values-frozen",
        "value-loss",
        ("values-do-not-learn",),
        (_CARTPOLE, _ACROBOT),
        settings={"vf_coef": 0.0},
    ),
    Fault(
        "ends-ignored",
        "targets",
        ("advantages", "value-targets"),
        (_CARTPOLE,),
        breaks="ends-ignored",
    ),
    Fault(
        "targets-are-rewards",
        "targets",
        ("value-targets",),
        (_CARTPOLE, _ACTOR_CRITIC),
        breaks="targets-are-rewards",
    ),
    Fault(
        "worst-action-in-target",
        "targets",
        ("value-targets",),
        (_Q,),
        breaks="worst-action-in-target",
    ),
    Fault("no-terminal-mask", "targets", ("value-targets",), (_Q,), breaks="no-terminal-mask"),
    Fault(
        "target-never-updated",
        "target-network",
        ("target-network",),
        (_Q, _S),
        settings={"target_update_interval": 10**9},
    ),
    Fault("target-tau-zero", "target-network", ("target-network",), (_T,), settings={"tau": 0.0}),
    Fault(
        "epsilon-stays",
        "exploration",
        ("too-much-exploration",),
        (_Q,),
        settings={"exploration_final_eps": 1.0},
    ),
    Fault("replay-of-100", "replay", ("replay",), (_Q, _S), settings={"buffer_size": 100}),
    Fault(
        "learning-starts-at-the-end",
        "replay",
        ("replay", "steps-too-small"),
        (_Q,),
        settings={"learning_starts": 20_000},
    ),
)


def faulty() -> Iterator[tuple[Fault, Training]]:
    """Yield each fault with each of its training runs."""
    for fault in FAULTS:
        for training in BASES:
            if training.name in fault.trainings:
                yield fault, training


def find(name: str) -> tuple[Fault | None, Training]:
    """Return the fault and the training run of a name such as `obs-tiny@ppo-CartPole`."""
    fault, _, of = name.removeprefix(CALIBRATION).rpartition("@")
    training = next(one for one in (*HEALTHY, *DEFAULTS) if one.name == of)
    return (next(one for one in FAULTS if one.name == fault) if fault else None), training


def names() -> list[str]:
    """Return the names of all runs: those that faults are compared with come first."""
    broken = [f"{fault.name}@{of.name}" for fault, of in faulty()]
    rest = [one.name for one in HEALTHY[len(BASES) :]]
    defaults = [one.name for one in DEFAULTS]
    return [*(one.name for one in BASES), *calibration(), *broken, *rest, *defaults]


def seeds_of(name: str) -> range:
    """Return the seeds of a run: healthy ones that set limits have seeds of their own."""
    if any(one.name == name for one in DEFAULTS):
        return range(FIRST_OF_DEFAULTS, FIRST_OF_DEFAULTS + SEEDS_OF_DEFAULTS)
    first = FIRST_OF_CALIBRATION if name.startswith(CALIBRATION) else 0
    return range(first, first + SEEDS)


def calibration() -> list[str]:
    """Return the names of the healthy runs whose logs set limits.

    The examples do not: their budgets are too short to learn, and one ends below random actions.
    """
    chosen = [one for one in HEALTHY if one.env != HELD_OUT_ENV and "example" not in one.name]
    return [f"{CALIBRATION}{one.name}" for one in chosen]
