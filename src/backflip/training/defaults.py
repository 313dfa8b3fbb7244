"""Settings that suit a kind of environment, where a person names none."""

from collections.abc import Mapping
from typing import Any, Literal

from backflip.core.spec import Discrete, EnvSpec
from backflip.envs.ids import HOST_PREFIX
from backflip.networks.torsos import GRID_SIDE
from backflip.training.bounds import BOUNDS

UNLIMITED = 1_000  # env steps that an episode without a time limit is taken to last
Kind = Literal["discrete", "continuous", "pixels", "grid"]

PPO: dict[Kind, dict[str, Any]] = {
    # SB3-zoo's settings of CartPole-v1 are PPOConfig's own defaults.
    "discrete": {"env_steps": 100_000},
    "continuous": {
        "env_steps": 500_000,
        "num_envs": 16,
        "rollout_length": 128,
        "epochs": 10,
        "minibatches": 32,
        "learning_rate": 3e-4,
        "learning_rate_end": 0.0,
        "discount": 0.99,
        "decay": 0.95,
        "clip": 0.2,
        "clip_end": 0.2,
        "normalize_obs": True,
        "scale_rewards": True,
    },
    # purejaxrl's settings of MinAtar, but for fewer env steps.
    "grid": {
        "env_steps": 1_000_000,
        "num_envs": 64,
        "rollout_length": 128,
        "epochs": 4,
        "minibatches": 8,
        "learning_rate": 5e-3,
        "learning_rate_end": 0.0,
        "discount": 0.99,
        "decay": 0.95,
        "clip": 0.2,
        "clip_end": 0.2,
        "entropy_bonus": 0.01,
        "entropy_bonus_end": 0.01,
    },
    "pixels": {
        "env_steps": 3_000_000,
        "num_envs": 32,
        "rollout_length": 64,
        "epochs": 4,
        "minibatches": 8,
        "learning_rate": 1e-3,
        "learning_rate_end": 1e-4,
        "discount": 0.99,
        "decay": 0.95,
        "clip": 0.2,
        "clip_end": 0.2,
        "entropy_bonus": 0.01,
        "entropy_bonus_end": 0.01,
    },
}
A2C: dict[Kind, dict[str, Any]] = {
    "discrete": {"env_steps": 500_000, "entropy_bonus": 0.0},
    "continuous": {
        "env_steps": 1_000_000,
        "num_envs": 16,
        "rollout_length": 8,
        "decay": 0.95,
        "learning_rate": 2e-3,
        "entropy_bonus": 0.0,
        "initial_log_std": -0.5,
        "normalize_obs": True,
        "scale_rewards": True,
    },
    "pixels": {"env_steps": 1_000_000, "num_envs": 16},
}
VPG: dict[Kind, dict[str, Any]] = {
    "discrete": {
        "env_steps": 200_000,
        "rollout_length": 256,
        "learning_rate": 5e-3,
        "value_learning_rate": 3e-3,
        "value_steps": 20,
    },
    "continuous": {"env_steps": 1_000_000, "normalize_obs": True, "scale_rewards": True},
    "pixels": {
        "env_steps": 1_000_000,
        "num_envs": 32,
        "rollout_length": 64,
        "learning_rate": 1e-3,
        "value_steps": 5,
    },
}
CEM: dict[Kind, dict[str, Any]] = {
    "discrete": {"env_steps": 500_000},
    "continuous": {
        "env_steps": 5_000_000,
        "num_envs": 100,
        "episodes": 5,
        "hidden": (16,),
        "initial_std": 2.0,
    },
}
DQN: dict[Kind, dict[str, Any]] = {
    "discrete": {"env_steps": 50_000},
    "grid": {
        "env_steps": 1_000_000,
        "rollout_length": 4,
        "updates_per_step": 0.25,
        "batch_size": 32,
        "buffer_size": 100_000,
        "warm_up": 5_000,
        "learning_rate": 2.5e-4,
        "target_update": 1_000,
        "exploration_steps": 100_000,
        "exploration_end": 0.01,
        "n_step": 1,
    },
    # A fifth of the papers' replay, three rewards summed and twice as many gradient steps: what
    # learns Pong on a laptop (docs/log.md).
    "pixels": {
        "env_steps": 1_000_000,
        "rollout_length": 4,
        "updates_per_step": 0.5,
        "batch_size": 32,
        "buffer_size": 200_000,
        "warm_up": 10_000,
        "learning_rate": 3e-4,
        "learning_rate_end": 1e-4,
        "target_update": 1_000,
        "exploration_steps": 100_000,
        "exploration_end": 0.01,
        "dueling": True,
        "clip_rewards": True,
    },
}
# Of small tasks; MuJoCo's settings are the dataclasses' own.
SMALL: dict[str, Any] = {
    "env_steps": 20_000,
    "num_envs": 4,
    "rollout_length": 16,
    "warm_up": 1_000,
    "buffer_size": 20_000,
    "actor_learning_rate": 1e-3,
    "critic_learning_rate": 1e-3,
    "hidden": (64, 64),
}
DDPG: dict[Kind, dict[str, Any]] = {"continuous": SMALL}
TD3: dict[Kind, dict[str, Any]] = {"continuous": SMALL}
SAC: dict[Kind, dict[str, Any]] = {
    "discrete": {"env_steps": 50_000, "warm_up": 1_000, "buffer_size": 50_000, "hidden": (64, 64)},
    "continuous": SMALL | {"temperature_learning_rate": 1e-3},
    "pixels": {"env_steps": 1_000_000, "buffer_size": 100_000, "updates_per_step": 0.25},
}
OF_MUJOCO = ("ddpg", "td3", "sac")  # for which the dataclasses' defaults are meant
ALGORITHMS: dict[str, dict[Kind, dict[str, Any]]] = {
    "ppo": PPO,
    "a2c": A2C,
    "vpg": VPG,
    "dqn": DQN,
    "ddpg": DDPG,
    "td3": TD3,
    "sac": SAC,
    "cem": CEM,
}

# What one environment needs beyond its kind's.
OF_ONE: dict[tuple[str, str], dict[str, Any]] = {
    ("dqn", "Acrobot-v1"): {
        "env_steps": 100_000,
        "rollout_length": 4,
        "updates_per_step": 0.25,
        "n_step": 1,
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "warm_up": 1_000,
        "target_update": 250,
        "exploration_steps": 12_000,
        "exploration_end": 0.1,
    },
    ("dqn", "dot"): {"network": "patches"},  # learns it faster than with contrast
    # The rates of SB3's zoo.
    ("dqn", "MountainCar-v0"): {
        "env_steps": 120_000,
        "num_envs": 1,
        "rollout_length": 16,
        "updates_per_step": 0.5,
        "n_step": 1,
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "warm_up": 1_000,
        "discount": 0.98,
        "target_update": 600,
        "exploration_steps": 24_000,
        "exploration_end": 0.07,
    },
    ("a2c", "Acrobot-v1"): {
        "num_envs": 16,
        "normalize_obs": True,
        "scale_rewards": True,
        "learning_rate_end": 7e-4,
    },
    ("ppo", "dot"): {  # 247 env steps, reward in each, and nothing else to be seen
        "env_steps": 300_000,
        "num_envs": 64,
        "rollout_length": 32,
        "epochs": 2,
        "minibatches": 4,
        "discount": 0.9,
        "decay": 0.9,
        "network": "patches",
    },
}


def kind_of(spec: EnvSpec) -> Kind:
    """Return the kind of environment that settings go by."""
    if spec.is_pixels:
        return "grid" if max(spec.observation.shape[:2]) <= GRID_SIDE else "pixels"
    return "discrete" if isinstance(spec.action, Discrete) else "continuous"


def defaults_of(algorithm: str, spec: EnvSpec, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of an algorithm for an environment, to be overridden by those `named`."""
    kinds, kind = ALGORITHMS[algorithm], kind_of(spec)
    if kind == "grid" and kind not in kinds:
        kind = "pixels"
    if algorithm in OF_MUJOCO and kind == "continuous" and not _is_small(spec):
        kinds = {}
    of_one = OF_ONE.get((algorithm, spec.id.removeprefix(HOST_PREFIX)), {})
    sees_pictures = kind_of(spec) == "pixels" and "pixels" in kinds
    of_pictures = {"network": "contrast"} if sees_pictures else {}
    chosen = {**of_pictures, **kinds.get(kind, {}), **of_one}
    if algorithm == "cem":
        episodes = {**chosen, **named}.get("episodes", 1)
        if not isinstance(episodes, int) or not BOUNDS["episodes"].holds(episodes):
            episodes = 1  # what was named will be refused
        chosen["rollout_length"] = _rows_of(spec, episodes)
    return chosen


def _is_small(spec: EnvSpec) -> bool:
    """Return whether an environment is of classic control's size, not MuJoCo's."""
    return spec.observation.shape[0] <= 4


def _rows_of(spec: EnvSpec, episodes: int) -> int:
    """Return the rows of so many whole episodes; outside JAX a reset between two is one, too."""
    return (spec.max_episode_steps or UNLIMITED) * episodes + episodes - 1
