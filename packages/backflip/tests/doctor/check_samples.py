"""For each check, a log that it must find wrong, one that is right, and what it measures."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from backflip.doctor.log import Log, Signal

POINTS = 100
X = np.arange(1, POINTS + 1) * 1000.0
T = X / X[-1]  # share of the budget


def log(
    algorithm: str | None = "ppo", settings: dict[str, Any] | None = None, **signals: Any
) -> Log:
    """Return a log of signals, each a number or an array of 100 values."""
    found = {
        name: Signal(X, np.broadcast_to(np.asarray(y, np.float64), X.shape).copy(), name)
        for name, y in signals.items()
    }
    return Log(
        "sample",
        "backflip",
        found,
        algorithm=algorithm,
        env="Task-v0",
        settings=settings or {},
        planned=X[-1],
    )


def _on_cartpole(**signals: Any) -> Log:
    return replace(log("ppo", **signals), env="CartPole-v1")


class Sample(NamedTuple):
    """Two logs for a check.

    Attributes:
        broken: it must be found wrong.
        healthy: it must be fine.
        value: what is measured in the broken one, computed by hand.
    """

    broken: Log
    healthy: Log
    value: float


def both(algorithm: str, value: float, broken: Any, healthy: Any, **settings: Any) -> Sample:
    """Return a sample from the signals of a broken and of a healthy log."""
    return Sample(log(algorithm, settings, **broken), log(algorithm, settings, **healthy), value)


def told(algorithm: str, setting: str, broken: float, healthy: float, **signals: Any) -> Sample:
    """Return a sample from the broken and the healthy value of a setting."""
    return Sample(
        log(algorithm, {setting: broken}, **signals),
        log(algorithm, {setting: healthy}, **signals),
        broken,
    )


LOG4 = math.log(4)
GAMMA = {"discount": 0.99}
_falling = 1.0 - 0.9 * T
_reward = {"reward_min": -1.0, "reward_max": 1.0}
_episodes = {"episode_length_mean": 50.0}
_positive = {"episode_length_mean": 50.0, "reward_min": 0.0, "reward_max": 2.0}
_returns = {"episode_return_mean": -100.0, "episode_length_mean": 50.0}
_rises = 100.0 * T
_slower = np.where(T > 0.5, 200.0, 1000.0)
_drops = np.where(T < 0.5, 200.0 * T, 10.0)
_keeps = np.where(T < 0.5, 200.0 * T, 80.0)
_halves = np.where(T < 0.5, 200.0 * T, 55.0)
_dips = np.where(T < 0.8, _drops, 60.0)
_decided = np.where(T <= 0.1, LOG4, 0.01)
_noise = np.where(np.arange(POINTS) % 2 == 0, 1.0, -1.0)
_nan_at_40 = np.where(np.arange(POINTS) == 40, math.nan, 0.3)

SAMPLES = {
    "PI-ENT-FLAT": both(
        "ppo",
        0.96,
        {"entropy": 0.96 * LOG4, "entropy_max": LOG4},
        {"entropy": LOG4 * _falling, "entropy_max": LOG4},
    ),
    "PI-ENT-HIGH": both(
        "ppo",
        0.96,
        {"entropy": 0.96 * LOG4, "entropy_max": LOG4},
        {"entropy": LOG4 * _falling, "entropy_max": LOG4},
    ),
    "PV-EV-ZERO": both(
        "ppo", 0.01, {"explained_variance": 0.01}, {"explained_variance": np.minimum(T * 4, 0.9)}
    ),
    "PV-CONSTANT": both(
        "ppo", 1e-7, {"explained_variance": 1e-7}, {"explained_variance": np.minimum(T * 4, 0.9)}
    ),
    "PV-EV-NEG": both("ppo", -0.5, {"explained_variance": -0.5}, {"explained_variance": -0.1}),
    "PI-ENT-START": both(
        "ppo",
        0.25,
        {"entropy": 0.25 * LOG4, "entropy_max": LOG4},
        {"entropy": LOG4 * _falling, "entropy_max": LOG4},
    ),
    "PI-ENT-COLLAPSE": both(
        "ppo",
        math.log10(0.05),
        {"entropy": np.where(T <= 0.02, LOG4, 0.01), "entropy_max": LOG4},
        {"entropy": LOG4 * _falling, "entropy_max": LOG4},
    ),
    "PI-ENT-EARLY": both(
        "ppo",
        0.0,
        {"entropy": _decided, "entropy_max": LOG4, "episode_return_mean": _noise},
        {"entropy": _decided, "entropy_max": LOG4, "episode_return_mean": _rises + _noise},
    ),
    "PI-ENT-GROW": both("ppo", 4.75, {"entropy": 5.0 * T}, {"entropy": 2.0 - T}),
    "PI-STD-COLLAPSE": both("ppo", 9.0, {"entropy": 1.0 - 20.0 * T}, {"entropy": 1.0 - T}),
    "PI-KL-HIGH": both("ppo", 0.5, {"approx_kl": 0.5}, {"approx_kl": 0.01}),
    "PI-KL-SPIKE": both(
        "ppo", 5.0, {"approx_kl": np.where(T == 0.5, 5.0, 0.01)}, {"approx_kl": 0.01}
    ),
    "PI-KL-TINY": both("ppo", -6.0, {"approx_kl": 1e-6}, {"approx_kl": 0.01}),
    "PI-KL-NEG": both(
        "ppo", -0.1, {"approx_kl": np.where(T == 0.5, -0.1, 0.01)}, {"approx_kl": 0.0}
    ),
    "ENV-ACTIONS": both(
        "ppo",
        0.02,
        {"action_effect_p": np.where(T == 0.5, 0.02 / np.sum(T <= 1.0), 0.7 + 0.1 * T)},
        {"action_effect_p": np.where(T == 0.02, 1e-12, 0.7 + 0.1 * T)},
    ),
    # Mean -0.1 and deviation 0.1 of 100 values: ten standard errors below 0.
    "Q-ACTIONS": both(
        "sac", -10.0, {"action_match": 0.1 * _noise - 0.1}, {"action_match": 0.1 * _noise + 0.01}
    ),
    "Q-REPLAY-OBS": both("dqn", 0.9, {"replay_obs_error": 0.9}, {"replay_obs_error": 1e-7}),
    "PI-RATIO1": both("ppo", 0.5, {"first_ratio_error": 0.5}, {"first_ratio_error": 1e-5}),
    "PI-CLIP-HIGH": both("ppo", 0.9, {"clip_fraction": 0.9}, {"clip_fraction": 0.1}),
    "PI-CLIP-NEVER": both("ppo", 0.0, {"clip_fraction": 0.0}, {"clip_fraction": 0.1}),
    "PV-EV-LOW": both(
        "ppo", 0.01, {"explained_variance": 0.01}, {"explained_variance": np.minimum(T * 4, 0.9)}
    ),
    "PV-EV-TRAP": both(
        "ppo",
        0.7,
        {"explained_variance": 0.8, "explained_variance_mc": 0.1},
        {"explained_variance": 0.8, "explained_variance_mc": 0.75},
    ),
    "PV-EV-PERFECT": both(
        "ppo",
        1.0,
        {"explained_variance": np.where(T < 0.04, 1.0, 0.5)},
        {"explained_variance": np.where(T < 0.02, 1.0, 0.999)},
    ),
    "PV-WEIGHT": both(
        "ppo",
        0.00125,
        {"total_loss": 0.15, "policy_loss": 0.1, "value_loss": 20.0, "entropy": 0.9},
        {"total_loss": 19.0, "policy_loss": 0.1, "value_loss": 20.0, "entropy": 0.9},
    ),
    "PV-EV-NAN": both("ppo", 1.0, {"explained_variance": math.nan}, {"explained_variance": 0.5}),
    "PV-ADV-MEAN": both(
        "ppo",
        3.0,
        {"advantage_mean": -3.0, "advantage_std": 1.0},
        {"advantage_mean": 0.01, "advantage_std": 1.0},
    ),
    "PV-ADV-ZERO": both(
        "ppo", -4.0, {"advantage_std": 1e-4} | _reward, {"advantage_std": 0.8} | _reward
    ),
    "PV-SIGN": both(
        "ppo",
        1.0,
        {"reward_min": 0.0, "reward_max": 1.0, "value_mean": -5.0},
        {"reward_min": 0.0, "reward_max": 1.0, "value_mean": 5.0},
    ),
    "PV-BOUND": both(
        "ppo", 4.0, _reward | {"value_mean": 400.0}, _reward | {"value_mean": 30.0}, **GAMMA
    ),
    "PV-ADV-WRONG": both(
        "ppo",
        0.2,
        {"advantage_error_max": np.where(T == 0.5, 0.2, 1e-7)},
        {"advantage_error_max": np.where(T == 0.5, math.nan, 1e-7)},
    ),
    "PV-TARGET-WRONG": both("a2c", 0.2, {"target_error_max": 0.2}, {"target_error_max": 1e-7}),
    "PV-LEVEL-HIGH": both(
        "ppo",
        1.0,
        {"reward_mean": 1.0, "value_mean": 1000.0} | _positive,
        {"reward_mean": 1.0, "value_mean": 50.0} | _positive,
        **GAMMA,
    ),
    "PV-LEVEL-LOW": both(
        "ppo",
        math.log10(1.0 / (100.0 * (1 - (1 - 0.99**50) / 0.5))),
        {"reward_mean": 1.0, "value_mean": 1.0} | _positive,
        {"reward_mean": 1.0, "value_mean": 50.0} | _positive,
        **GAMMA,
    ),
    "PV-LOSS": both("ppo", 6.0, {"value_loss": 1e6}, {"value_loss": 1.0}),
    "Q-LOSS": both(
        "sac",
        50.0,
        {"q_loss": 25e6, "episode_return_mean": -100.0},
        {"q_loss": 2500.0, "episode_return_mean": -100.0},
    ),
    "Q-BOUND": both("dqn", 10.0, _reward | {"q_mean": 1000.0}, _reward | {"q_mean": 20.0}, **GAMMA),
    # -100 in 50 env steps: 25 of them follow on average, with -2 each.
    "Q-ABOVE": both("td3", 40.0, _returns | {"q_mean": -2000.0}, _returns | {"q_mean": -50.0}),
    "Q-BELOW": both("td3", 0.025, _returns | {"q_mean": -1.0}, _returns | {"q_mean": -50.0}),
    "Q-ONE-REWARD": both("td3", 0.1, _returns | {"q_mean": -2.2}, _returns | {"q_mean": -50.0}),
    "Q-ENTROPY": both(
        "sac",
        40.0,
        _returns | {"q_mean": 2000.0, "temperature": 10.0},
        _returns | {"q_mean": 2000.0, "temperature": 0.01},
    ),
    "Q-SIGN": both("td3", -1.25, _returns | {"q_mean": 50.0}, _returns | {"q_mean": -50.0}),
    "Q-TARGET-WRONG": both("dqn", 0.2, {"target_error_max": 0.2}, {"target_error_max": 1e-7}),
    "Q-TARGET-STILL": both(
        "dqn",
        20.0,
        {"target_update_ratio": np.where(X <= 20_000, 0.1, 0.0)},
        {"target_update_ratio": np.where(X % 10_000 == 0, 0.1, 0.0)},
        target_update_interval=4_000,
    ),
    "Q-ERROR": both(
        "dqn", 50.0, _reward | {"td_error_abs_mean": 50.0}, _reward | {"td_error_abs_mean": 0.1}
    ),
    "Q-NO-UPDATE": Sample(
        replace(log("dqn", **_returns), library="sb3"),
        replace(log("dqn", q_loss=1.0, **_returns), library="sb3"),
        1.0,
    ),
    "Q-NO-POLICY-LOSS": Sample(
        replace(log("td3", q_loss=1.0), library="sb3"),
        replace(log("td3", q_loss=1.0, policy_loss=1.0), library="sb3"),
        0.99,
    ),
    "Q-BEHIND": both(
        "dqn",
        1.0,
        {"target_mean": 3.0, "q_mean": 1.0, "td_error_abs_mean": 2.0},
        {"target_mean": 1.05, "q_mean": 1.0, "td_error_abs_mean": 0.5},
    ),
    "Q-LEVEL": both(
        "dqn",
        0.0,
        _positive | {"reward_mean": 1.0, "q_mean": 1.0},
        _positive | {"reward_mean": 1.0, "q_mean": 20.0},
    ),
    "Q-EPS-RISE": both("dqn", 0.01, {"epsilon": T}, {"epsilon": 1 - T}),
    "Q-EPS-HIGH": both("dqn", 0.9, {"epsilon": 0.9}, {"epsilon": np.maximum(1 - 5 * T, 0.05)}),
    "Q-TEMPERATURE": both(
        "sac", 2.0, {"temperature": 10 ** (2 * (T - 0.01) / 0.99)}, {"temperature": 1 - 0.5 * T}
    ),
    "Q-TEMPERATURE-LOW": both(
        "sac", -8.0, {"temperature": 10 ** (-8 * (T - 0.01) / 0.99)}, {"temperature": 1 - 0.5 * T}
    ),
    "Q-SATURATED": both("td3", 0.99, {"action_saturation": 0.99}, {"action_saturation": 0.2}),
    "Q-NOSTART": Sample(
        log("dqn", {"learning_starts": 2e5}, q_mean=0.0),
        log("dqn", {"learning_starts": 1e3}, q_mean=0.0),
        1.0,
    ),
    "Q-TARGET-NEVER": Sample(
        log("dqn", {"target_update_interval": 1e6}, q_mean=0.0),
        log("dqn", {"target_update_interval": 1e4}, q_mean=0.0),
        10.0,
    ),
    "Q-POLICY-NEVER": Sample(
        log("td3", {"policy_delay": 1e6, "gradient_steps": 2}, q_mean=0.0),
        log("td3", {"policy_delay": 2, "gradient_steps": -1}, q_mean=0.0),
        5.0,
    ),
    "Q-TEMPERATURE-FIXED": both("sac", 1.0, {"temperature": 0.2}, {"temperature": _falling}),
    "PI-ENT-COEF": Sample(
        log("ppo", {"entropy_coef": 2.0}, entropy=1.0),
        log("ppo", {"entropy_coef": 0.1}, entropy=1.0),
        2.0,
    ),
    "PV-COEF": told("ppo", "value_coef", 0.0, 0.5, entropy=1.0),
    "NN-LR-LOW": told("sac", "learning_rate", 1e-8, 0.0003, q_mean=1.0),
    "PI-CLIP-OFF": told("ppo", "clip_range", 10.0, 0.2, entropy=1.0),
    "GAMMA-RANGE": Sample(
        log("dqn", {"discount": 1.02}, q_mean=1.0), log("dqn", {"discount": 1.0}, q_mean=1.0), 0.02
    ),
    "GAE-RANGE": Sample(
        log("ppo", {"gae_lambda": -0.95}, entropy=1.0),
        log("ppo", {"gae_lambda": 1.0}, entropy=1.0),
        0.95,
    ),
    "Q-TAU-RANGE": Sample(
        log("sac", {"tau": 5.0}, q_mean=1.0), log("sac", {"tau": 0.005}, q_mean=1.0), 4.0
    ),
    "Q-EPS-RANGE": Sample(
        log("dqn", {"epsilon_start": 1.0, "epsilon_end": 5.0}, q_mean=1.0),
        log("dqn", {"epsilon_start": 1.0, "epsilon_end": 0.05}, q_mean=1.0),
        4.0,
    ),
    "PI-CLIP-ZERO": told("ppo", "clip_range", 0.0, 0.2, entropy=1.0),
    "Q-REPLAY-SMALL": told("dqn", "buffer_size", 100.0, 5000.0, q_mean=1.0),
    "PI-ENT-SIGN": Sample(
        log("a2c", {"entropy_coef": -0.1}, entropy=1.0),
        log("a2c", {"entropy_coef": 0.0}, entropy=1.0),
        -0.1,
    ),
    "NN-NAN": both(
        "ppo",
        1.0,
        {"policy_loss": _nan_at_40, "value_loss": 0.1},
        {"policy_loss": 0.3, "value_loss": 0.1},
    ),
    "NN-GRAD-LARGE": both("ppo", 5.0, {"grad_norm": 1e5}, {"grad_norm": 0.5}),
    "NN-GRAD-SMALL": both("ppo", -7.0, {"grad_norm": 1e-7}, {"grad_norm": 0.5}),
    "NN-ACTOR-SMALL": both("sac", -9.0, {"actor_grad_norm": 1e-9}, {"actor_grad_norm": 0.5}),
    "NN-ACTOR-LARGE": both("sac", 4.0, {"actor_grad_norm": 1e4}, {"actor_grad_norm": 0.5}),
    "NN-UPDATE-LARGE": both("ppo", 0.0, {"update_ratio": 1.0}, {"update_ratio": 0.01}),
    "NN-UPDATE-SMALL": both("ppo", -6.0, {"update_ratio": 1e-6}, {"update_ratio": 0.01}),
    "NN-POLICY-STILL": both(
        "ppo",
        -8.0,
        {"policy_update_ratio": 1e-10, "update_ratio": 0.01},
        {"policy_update_ratio": 1e-3, "update_ratio": 0.01},
    ),
    "NN-VALUE-STILL": both(
        "ppo",
        -8.0,
        {"value_update_ratio": 1e-10, "update_ratio": 0.01},
        {"value_update_ratio": np.where(T == 0.1, 1e-3, 0.0), "update_ratio": 0.01},
    ),
    "NN-LR-ZERO": both(
        "ppo", 0.0, {"learning_rate": np.maximum(1 - 4 * T, 0.0)}, {"learning_rate": 1 - T}
    ),
    "NN-LR-HIGH": both("ppo", 0.1, {"learning_rate": 0.1}, {"learning_rate": 3e-4}),
    "ENV-DROP": both("ppo", 0.96, {"episode_return_mean": _drops}, {"episode_return_mean": _rises}),
    "ENV-END": both("ppo", 0.96, {"episode_return_mean": _drops}, {"episode_return_mean": _dips}),
    "ENV-LOST": both(
        "ppo", 0.443, {"episode_return_mean": _halves}, {"episode_return_mean": _keeps}
    ),
    "ENV-WORSE": both(
        "ppo", 93.5 / (4.5 + 0.1), {"episode_return_mean": -_rises}, {"episode_return_mean": _rises}
    ),
    "ENV-NOTHING": both(
        "ppo", 0.0, {"episode_return_mean": _noise}, {"episode_return_mean": _rises + _noise}
    ),
    "ENV-RANDOM": Sample(  # random actions get 23.7 there, with a standard deviation of 12.3
        replace(log("ppo", episode_return_mean=10.0 + 0.01 * T), env="CartPole-v1"),
        replace(log("ppo", episode_return_mean=np.where(T > 0.02, 40.0, 20.0)), env="CartPole-v1"),
        (10.01 - 23.68) / 12.261,
    ),
    "ENV-BELOW": Sample(  # healthy PPO gets 500 there, the untrained policy 22.1
        replace(log("ppo", episode_return_mean=30.0 + T), env="CartPole-v1"),
        replace(log("ppo", episode_return_mean=_drops + 300.0), env="CartPole-v1"),
        (31.0 - 22.1) / (500.0 - 22.1),
    ),
    "ENV-NEGATED": Sample(
        _on_cartpole(episode_return_mean=-20.0 - 80 * T, episode_length_mean=20.0 + 80 * T),
        _on_cartpole(episode_return_mean=20.0 + 80 * T, episode_length_mean=20.0 + 80 * T),
        0.0,
    ),
    "ENV-RANGE": Sample(  # twice the reward of each env step
        _on_cartpole(episode_return_mean=800.0 * T, episode_length_mean=400.0 * T),
        _on_cartpole(episode_return_mean=400.0 * T, episode_length_mean=400.0 * T),
        300.0,
    ),
    "ENV-EVALGAP": both(
        "ppo",
        0.1,
        {"episode_return_mean": 10 * np.round(10 * T), "evaluation_return": np.round(10 * T)},
        {"episode_return_mean": 10 * np.round(10 * T), "evaluation_return": 10 * np.round(10 * T)},
    ),
    "ENV-EQUAL": both("ppo", 0.0, {"episode_return_mean": 8.0}, {"episode_return_mean": _rises}),
    "ENV-NOEP": Sample(
        replace(log("ppo", approx_kl=0.01), library="sb3"),
        replace(log("ppo", episode_return_mean=_rises), library="sb3"),
        1.0,
    ),
    "ENV-NOEND": both("ppo", 1.0, {"episodes": 0.0}, {"episodes": 3.0}),
    "ENV-LEN": both(
        "ppo",
        0.0,
        {"episode_length_min": 7.0, "episode_length_max": 7.0},
        {"episode_length_min": 3.0, "episode_length_max": 9.0},
        max_episode_steps=100,
    ),
    "REW-SIGN": both(
        "ppo",
        1.0,
        {"episode_return_mean": _rises, "reward_mean": -1.0} | _episodes,
        {"episode_return_mean": _rises, "reward_mean": 1.0} | _episodes,
    ),
    "REW-UNRELATED": both(
        "ppo",
        -1.0,
        {"episode_return_mean": _rises, "reward_mean": -T} | _episodes,
        {"episode_return_mean": _rises, "reward_mean": T} | _episodes,
    ),
    "REW-CONST": both("ppo", 0.0, {"reward_min": 1.0, "reward_max": 1.0}, _reward),
    "REW-ZERO": both("ppo", 0.0, {"reward_min": 0.0, "reward_max": 0.0}, _reward),
    "REW-LARGE": both("ppo", 4.0, {"reward_min": -1e4, "reward_max": 0.0}, _reward),
    "REW-SMALL": both("ppo", -5.0, {"reward_min": 0.0, "reward_max": 1e-5}, _reward),
    "GAMMA-H": Sample(
        log("ppo", {"discount": 0.0}, entropy=1.0), log("ppo", {"discount": 0.99}, entropy=1.0), 1.0
    ),
    "OBS-LARGE": both(
        "ppo",
        3.0,
        {"obs_abs_mean": 10.0, "obs_std_max": 1e3},
        {"obs_abs_mean": 0.1, "obs_std_max": 1.0},
        normalize_obs=False,
    ),
    "OBS-CONST": both("ppo", -4.0, {"obs_std_max": 1e-4}, {"obs_std_max": 1.0}),
    "RM-CHANCE": both(
        "ppo",
        0.5,
        {"reward_model_held_out_accuracy": 0.5, "reward_model_labels": 100.0},
        {"reward_model_held_out_accuracy": 0.9, "reward_model_labels": 100.0},
    ),
    "RM-OVERFIT": both(
        "ppo",
        0.4,
        {
            "reward_model_accuracy": 0.95,
            "reward_model_held_out_accuracy": 0.55,
            "reward_model_labels": 100.0,
        },
        {
            "reward_model_accuracy": 0.95,
            "reward_model_held_out_accuracy": 0.9,
            "reward_model_labels": 100.0,
        },
    ),
    "RM-TIES": both(
        "ppo",
        0.01,
        {"reward_model_labels": 100.0, "reward_model_ties": 99.0},
        {"reward_model_labels": 100.0, "reward_model_ties": 20.0},
    ),
    "RM-ONE-KEY": both(
        "ppo", 10.0, {"label_left": 1.0}, {"label_left": np.where(X % 2000 == 0, 1.0, 0.0)}
    ),
    "RM-HACK": both(
        "ppo", 30.0, {"fresh_evidence": 1.0 + 29.0 * (T > 0.5)}, {"fresh_evidence": 2.0}
    ),
    "RM-SIAMESE": both(
        "ppo",
        0.2,
        {"reward_model_symmetry_error": np.where(T == 0.5, 0.2, 1e-7)},
        {"reward_model_symmetry_error": 1e-7},
    ),
    "RM-PATHS": both(
        "ppo",
        0.4,
        {"reward_model_path_error": 0.4 * T},
        {"reward_model_path_error": 1e-7},
    ),
    "RM-COLLAPSED": both(
        "ppo", 1.0, {"reward_model_collapsed": 1.0}, {"reward_model_collapsed": 0.0}
    ),
    "SYS-SPEED": both(
        "ppo",
        0.8,
        {"env_steps_per_second": _slower},
        {"env_steps_per_second": 1000.0},
    ),
    "SYS-SHARED": both(
        "ppo",
        2.5,
        {"load_per_core": 3.0, "cpu_percent": 100.0 / 3.0, "cores": 2.0},
        {"load_per_core": 3.0, "cpu_percent": 200.0, "cores": 2.0},
    ),
    "SYS-GPU-IDLE": both(
        "ppo", 2.0, {"gpu0/utilisation_percent": 2.0}, {"gpu0/utilisation_percent": 60.0}
    ),
    "SYS-CPUS": both("ppo", 3.0, {"load_per_core": 3.0}, {"load_per_core": 0.9}),
    "SYS-SAVED": both(None, 300.0, {"saved_unneeded_mib": 300.0}, {"saved_unneeded_mib": 3.0}),
    "SYS-MEMORY": both(
        "ppo",
        0.96,
        {"memory_mib": 500.0 + 1000.0 * np.maximum(T - 0.5, 0.0)},
        {"memory_mib": np.where(T < 0.9, 500.0, 1000.0)},
    ),
}
