"""Faults of observations, rewards and actions, in algorithms of every kind."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from fault import Fault, on_actions, on_batch, on_observations

ALL = ("ppo", "a2c", "dqn", "sac", "td3")
ON = ("ppo", "a2c")
RAW = {"normalize_rewards": False}


def _reward(change: Callable[[Any], Any]) -> Any:
    return on_batch(lambda batch: batch._replace(reward=change(batch.reward)))


def _random_reward(reward: Any) -> Any:
    bits = jax.lax.bitcast_convert_type(reward.sum(), jnp.int32)
    key = jax.random.fold_in(jax.random.key(0), bits)
    return jax.random.normal(key, reward.shape)


def _noisy(obs: Any) -> Any:
    bits = jax.lax.bitcast_convert_type(obs.astype(jnp.float32).sum(), jnp.int32)
    key = jax.random.fold_in(jax.random.key(1), bits)
    return 0.0 * obs + jax.random.normal(key, obs.shape)


def _of_neighbour(obs: Any) -> Any:
    return jnp.roll(obs, 1, axis=-2)


def _constant(obs: Any) -> Any:
    return jnp.zeros_like(obs) + 1.0


def _first_only(action: Any) -> Any:
    return jnp.zeros_like(action)


def _neighbours_action(action: Any) -> Any:
    return jnp.roll(action, 1, axis=0)


FAULTS = (
    Fault("obs-constant", "observations", ("observations",), ALL, wrap=on_observations(_constant)),
    Fault("obs-noise", "observations", ("observations",), ALL, wrap=on_observations(_noisy)),
    Fault(
        "obs-of-neighbour",
        "observations",
        ("observations",),
        ALL,
        wrap=on_observations(_of_neighbour),
    ),
    Fault(
        "obs-huge",
        "obs-scale",
        ("observations",),
        ("ppo", "a2c"),
        settings={"normalize_obs": False},
        wrap=on_observations(lambda obs: obs * 300.0 + 500.0),
    ),
    Fault(
        "obs-tiny",
        "obs-scale",
        ("observations",),
        ("ppo", "a2c"),
        settings={"normalize_obs": False},
        wrap=on_observations(lambda obs: obs * 1e-3),
    ),
    Fault(
        "obs-scaled-in-learning-only",
        "paths",
        ("acting-and-learning-disagree", "observations"),
        ("dqn", "sac", "td3"),
        wrap=on_observations(lambda obs: obs * 10.0, acting=False),
    ),
    Fault(
        "reward-negated",
        "reward-sign",
        ("reward-sign", "policy-loss"),
        ALL,
        wrap=_reward(lambda reward: -reward),
    ),
    Fault(
        "reward-shifted",
        "reward-sign",
        ("reward-sign",),
        ALL,
        wrap=_reward(lambda reward: reward - 2.0),
    ),
    Fault(
        "reward-random",
        "reward-none",
        ("no-reward-signal", "reward-sign"),
        ALL,
        wrap=_reward(_random_reward),
    ),
    Fault("reward-zero", "reward-none", ("no-reward-signal",), ALL, wrap=_reward(jnp.zeros_like)),
    Fault(
        "reward-huge",
        "reward-scale",
        ("reward-scale",),
        ("ppo", "a2c"),
        settings=RAW,
        wrap=_reward(lambda reward: reward * 1000.0),
    ),
    Fault(
        "reward-tiny",
        "reward-scale",
        ("reward-scale",),
        ("dqn", "sac", "td3"),
        wrap=_reward(lambda reward: reward * 1e-4),
    ),
    Fault(
        "reward-huge-off-policy",
        "reward-scale",
        ("reward-scale",),
        ("dqn", "sac", "td3"),
        wrap=_reward(lambda reward: reward * 1000.0),
    ),
    Fault(
        "actions-swapped-in-env",
        "actions",
        ("actions", "acting-and-learning-disagree"),
        ALL,
        wrap=on_actions(_neighbours_action),
    ),
    Fault(
        "actions-stuck",
        "actions",
        ("actions", "too-little-exploration"),
        ALL,
        wrap=on_actions(_first_only),
    ),
)
