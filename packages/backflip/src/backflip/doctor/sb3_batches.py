"""Batches of Stable-Baselines3 as arrays, and what the doctor measures of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from backflip.doctor.action_effect import action_effect
from backflip.doctor.sb3_models import number_of_actions

TRANSITIONS = 1_000  # rows of each estimate of the effect of actions
NEWEST = 8  # rows of a replay


def each(obs: Any, change: Callable[[Any], Any]) -> Any:
    """Return observations changed; of a dictionary, each of its entries."""
    return {k: change(x) for k, x in obs.items()} if isinstance(obs, dict) else change(obs)


def joined(obs: Any) -> np.ndarray:
    """Return observations as one array; the entries of a dictionary side by side."""
    if not isinstance(obs, dict):
        return np.asarray(obs)
    entries: Any = obs.values()
    return np.concatenate([x.reshape(len(x), -1) for x in entries], axis=1)


def flattened(values: np.ndarray) -> np.ndarray:
    """Return values of time steps and environments with one axis of rows."""
    return values.reshape(-1, *values.shape[2:])


def all_but_last(values: np.ndarray) -> np.ndarray:
    """Return all time steps but the last."""
    return values[:-1]


def all_but_first(values: np.ndarray) -> np.ndarray:
    """Return all time steps but the first."""
    return values[1:]


def on_cpu(values: Any) -> np.ndarray:
    """Return a tensor as an array."""
    return values.cpu().numpy()


def effect_of_rows(model: Any, rows: np.ndarray) -> float:
    """Return `action_effect` of rows of a replay, each with a step of every environment."""
    buffer: Any = model.replay_buffer
    obs, after = (
        joined(each(x, lambda values: flattened(values[rows])))[:TRANSITIONS]
        for x in (buffer.observations, buffer.next_observations)
    )
    others = (buffer.actions, buffer.rewards, buffer.dones)
    acted, rewards, ended = (flattened(x[rows])[:TRANSITIONS] for x in others)
    return action_effect(obs, acted, after, rewards, ended, choices=number_of_actions(model))


def rewards_in(model: Any) -> np.ndarray:
    """Return single rewards of a replay as they are learned from."""
    buffer: Any = model.replay_buffer
    rewards, normaliser = buffer.rewards[: buffer.size()], model.get_vec_normalize_env()
    return rewards if normaliser is None else normaliser.normalize_reward(rewards)


def replay_error(buffer: Any) -> float:
    """Return how far drawn observations are from the stored ones, relative to these.

    The newest rows are drawn, without normalisation; for each, any environment's may be.
    """
    known = hasattr(buffer, "_get_samples") and isinstance(buffer.observations, np.ndarray)
    if not known or buffer.pos < NEWEST:
        return math.nan
    rows = np.arange(buffer.pos - NEWEST, buffer.pos)
    drawn = buffer._get_samples(rows).observations.cpu().numpy().reshape(NEWEST, 1, -1)
    stored = buffer.observations[rows].reshape(NEWEST, buffer.n_envs, -1)
    error = np.abs(drawn - stored).max(2).min(1)
    return float((error / (np.abs(stored).max((1, 2)) + 1e-9)).max())


def explained(values: np.ndarray, returns: np.ndarray) -> float:
    """Return 1 - Var(R - V) / Var(R); NaN if all returns are equal."""
    spread = float(np.var(returns))
    return 1.0 - float(np.var(returns - values)) / spread if spread else math.nan


def of_action_values(q: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Return what is logged of Q(s, a) and its targets."""
    return {
        "q_mean": q.mean(),
        "q_max": q.max(),
        "target_mean": target.mean(),
        "td_error_abs_mean": np.abs(target - q).mean(),
    }


def of_rewards(rewards: np.ndarray) -> dict[str, float]:
    """Return what is logged of rewards."""
    return {
        "reward_mean": rewards.mean(),
        "reward_std": rewards.std(),
        "reward_min": rewards.min(),
        "reward_max": rewards.max(),
    }


def of_observations(obs: np.ndarray) -> dict[str, float]:
    """Return what is logged of observations; nothing of images."""
    if obs.ndim != 2:  # pictures
        return {}
    deviation = obs.std(0)
    return {
        "obs_abs_mean": np.abs(obs.mean(0)).mean(),
        "obs_std_min": deviation.min(),
        "obs_std_max": deviation.max(),
    }
