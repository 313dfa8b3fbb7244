"""Former names of settings, and names that other libraries use.

Saved runs and policies keep the former names. `current_names` converts them when a run is opened.
"""

from collections.abc import Mapping
from typing import Any

from backflip.core.settings import Names

RENAMED = {
    "clip": "clip_range",
    "clip_end": "clip_range_end",
    "decay": "gae_lambda",
    "elite_share": "elite_fraction",
    "entropy_bonus": "entropy_coef",
    "entropy_bonus_end": "entropy_coef_end",
    "entropy_per_dimension": "target_entropy_per_dimension",
    "entropy_share": "target_entropy_scale",
    "exploration_end": "epsilon_end",
    "exploration_start": "epsilon_start",
    "exploration_steps": "epsilon_steps",
    "noise_end": "noise_fraction",
    "priority_correction": "importance_sampling_exponent",
    "scale_rewards": "normalize_rewards",
    "target_rate": "tau",
    "target_update": "target_update_interval",
    "value_clip": "value_clip_range",
    "value_steps": "value_gradient_steps",
    "value_weight": "value_coef",
    "warm_up": "learning_starts",
}

# In Stable-Baselines3, CleanRL, RLlib, Spinning Up, rejax, and in papers.
ALIASES = {
    "alpha": ("initial_temperature", "priority_exponent"),
    "alpha_lr": ("temperature_learning_rate",),
    "beta": ("importance_sampling_exponent",),
    "clip_coef": ("clip_range",),
    "clip_eps": ("clip_range",),
    "clip_param": ("clip_range",),
    "clip_ratio": ("clip_range",),
    "clip_range_vf": ("value_clip_range",),
    "ent_coef": ("entropy_coef", "initial_temperature"),
    "epsilon": ("epsilon_end",),
    "exploration_final_eps": ("epsilon_end",),
    "exploration_fraction": ("epsilon_steps",),
    "exploration_initial_eps": ("epsilon_start",),
    "gae_lam": ("gae_lambda",),
    "gamma": ("discount",),
    "lam": ("gae_lambda",),
    "lambda": ("gae_lambda",),
    "lambda_": ("gae_lambda",),
    "learning_rate": ("actor_learning_rate",),
    "log_std_init": ("initial_log_std",),
    "lr": ("learning_rate", "actor_learning_rate"),
    "n_envs": ("num_envs",),
    "n_epochs": ("epochs",),
    "n_steps": ("rollout_length",),
    "net_arch": ("hidden",),
    "norm_obs": ("normalize_obs",),
    "norm_reward": ("normalize_rewards",),
    "num_minibatches": ("minibatches",),
    "num_steps": ("rollout_length",),
    "pi_lr": ("learning_rate", "actor_learning_rate"),
    "policy_frequency": ("policy_delay",),
    "polyak": ("tau",),
    "q_lr": ("critic_learning_rate",),
    "replay_size": ("buffer_size",),
    "start_steps": ("learning_starts",),
    "target_entropy": ("target_entropy_per_dimension",),
    "target_network_frequency": ("target_update_interval",),
    "target_policy_noise": ("target_noise",),
    "timesteps": ("env_steps",),
    "total_timesteps": ("env_steps",),
    "train_freq": ("rollout_length",),
    "train_v_iters": ("value_gradient_steps",),
    "update_epochs": ("epochs",),
    "utd_ratio": ("updates_per_step",),
    "vf_coef": ("value_coef",),
    "vf_lr": ("value_learning_rate",),
}

NAMES = Names(RENAMED, ALIASES)


def current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved settings under their current names."""
    return {RENAMED.get(name, name): value for name, value in settings.items()}
