"""Settings that suit a kind of environment, where a person names none."""

from typing import Any

from backflip.core.spec import Discrete, EnvSpec

# SB3-zoo's settings of CartPole-v1 are PPOConfig's own defaults.
CLASSIC_CONTROL: dict[str, Any] = {"env_steps": 100_000}
CONTINUOUS: dict[str, Any] = {
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
}
PIXELS: dict[str, Any] = {
    "env_steps": 1_000_000,
    "num_envs": 64,
    "rollout_length": 32,
    "epochs": 2,
    "minibatches": 4,
    "learning_rate": 1e-3,
    "learning_rate_end": 1e-4,
    "discount": 0.99,
    "decay": 0.9,
    "clip": 0.2,
    "clip_end": 0.2,
    "entropy_bonus": 0.01,
    "entropy_bonus_end": 0.01,
}
# What one environment needs beyond its kind's: a dense reward over 247 env steps an episode.
OF_ONE: dict[str, dict[str, Any]] = {"dot": {"env_steps": 300_000, "discount": 0.9}}


def ppo_settings(spec: EnvSpec) -> dict[str, Any]:
    """Return settings of PPO for an environment, to be overridden by what a person names."""
    kind = CLASSIC_CONTROL if isinstance(spec.action, Discrete) else CONTINUOUS
    kind = PIXELS if spec.is_pixels else kind
    return {**kind, **OF_ONE.get(spec.id, {})}
