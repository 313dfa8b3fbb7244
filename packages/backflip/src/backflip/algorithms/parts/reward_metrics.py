"""Metrics of the rewards of a batch."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from backflip.algorithms.interface import Metrics
from backflip.core.statistics import masked_mean, masked_std


def reward_metrics(reward: Float[Array, "*rows"], valid: Bool[Array, "*rows"]) -> Metrics:
    """Return mean, standard deviation, minimum and maximum reward over the valid rows."""
    return {
        "reward_mean": masked_mean(reward, valid),
        "reward_std": masked_std(reward, valid),
        "reward_min": jnp.where(valid, reward, jnp.inf).min(),
        "reward_max": jnp.where(valid, reward, -jnp.inf).max(),
    }
