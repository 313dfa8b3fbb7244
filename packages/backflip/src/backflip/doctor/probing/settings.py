"""Settings with which our algorithms solve every probe in seconds."""

from collections.abc import Mapping
from typing import Any

_REPLAY = {
    "env_steps": 8_192,
    "num_envs": 4,
    "rollout_length": 16,
    "updates_per_step": 0.5,
    "batch_size": 32,
    "buffer_size": 2_048,
    "learning_starts": 256,
    "discount": 0.9,
    "hidden": (16, 16),
}
_CRITICS = {**_REPLAY, "actor_learning_rate": 3e-3, "critic_learning_rate": 3e-3, "tau": 0.05}

# By algorithm, and by algorithm and probe where one needs more.
SETTINGS: Mapping[str, dict[str, Any]] = {
    "ppo": {
        "env_steps": 64 * 80,
        "num_envs": 8,
        "rollout_length": 8,
        "epochs": 8,
        "minibatches": 2,
        "learning_rate": 1e-2,
        "discount": 0.9,
        "gae_lambda": 0.95,
        "clip_range_end": 0.2,
        "hidden": (16, 16),
        "normalize_obs": False,
        "normalize_rewards": False,
        "initial_log_std": -1.0,
    },
    "ppo probe:bound": {"initial_log_std": 0.0},  # the bound is two units away
    "a2c": {
        "env_steps": 40 * 1_500,
        "num_envs": 8,
        "rollout_length": 5,
        "learning_rate": 1e-2,
        "discount": 0.9,
        "entropy_coef": 0.0,
        "hidden": (16, 16),
        "normalize_obs": False,
        "normalize_rewards": False,
        "initial_log_std": -1.0,
    },
    "vpg": {
        "env_steps": 64 * 200,
        "num_envs": 8,
        "rollout_length": 8,
        "learning_rate": 1e-2,
        "value_learning_rate": 1e-2,
        "value_gradient_steps": 10,
        "discount": 0.9,
        "hidden": (16, 16),
        "normalize_obs": False,
        "normalize_rewards": False,
        "initial_log_std": -1.0,
    },
    "dqn": {
        **_REPLAY,
        "learning_rate": 5e-3,
        "learning_rate_end": 5e-4,
        "target_update_interval": 64,
        "epsilon_end": 0.1,
        "epsilon_steps": 2_048,
        "n_step": 1,
    },
    "sac": {
        **_CRITICS,
        "initial_temperature": 0.01,
        "temperature_learning_rate": 3e-3,
        "target_entropy_per_dimension": -3.0,
        "target_entropy_scale": 0.1,
    },
    "td3": _CRITICS,
    "ddpg": _CRITICS,
    "cem": {"env_steps": 20 * 60, "num_envs": 20, "rollout_length": 1},
}
