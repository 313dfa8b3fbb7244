"""Returns and lengths of episodes, and their statistics."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from backflip.algorithms.interface import Metrics
from backflip.core.types import Transition


def episode_totals(
    total: Float[Array, " N"], length: Float[Array, " N"], batch: Transition
) -> tuple[Array, Array, Float[Array, "T N"], Float[Array, "T N"]]:
    """Return running return and length after the batch, and both just after each of its steps."""

    def forward(carry: tuple[Array, Array], step: tuple[Array, ...]) -> tuple[Any, Any]:
        reward, ended, valid = step
        total = carry[0] + jnp.where(valid, reward, 0.0)
        length = carry[1] + valid.astype(jnp.float32)
        over = ended & valid
        return (jnp.where(over, 0.0, total), jnp.where(over, 0.0, length)), (total, length)

    ended = batch.terminated | batch.truncated
    rows = (batch.reward, ended, batch.valid)
    (total, length), (returns, lengths) = jax.lax.scan(forward, (total, length), rows)
    return total, length, returns, lengths


def episode_metrics(
    returns: Float[Array, "T N"], lengths: Float[Array, "T N"], ended: Bool[Array, "T N"]
) -> Metrics:
    """Return mean, std, min and max over the episodes that ended; NaN if none did.

    Episodes whose length is NaN are left out: they are parts (`drivers/training_episodes.py`).
    """
    ended &= ~jnp.isnan(lengths)
    count = ended.sum().astype(jnp.float32)
    metrics: Metrics = {"episodes": count}
    for name, x in (("episode_return", returns), ("episode_length", lengths)):
        mean = jnp.where(ended, x, 0.0).sum() / jnp.maximum(count, 1)
        variance = jnp.where(ended, jnp.square(x - mean), 0.0).sum() / jnp.maximum(count, 1)
        low = jnp.where(ended, x, jnp.inf).min()
        high = jnp.where(ended, x, -jnp.inf).max()
        for suffix, value in zip(
            ("mean", "std", "min", "max"), (mean, jnp.sqrt(variance), low, high), strict=True
        ):
            metrics[f"{name}_{suffix}"] = jnp.where(count > 0, value, jnp.nan)
    return metrics
