"""Running mean and variance, and statistics under a mask."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


class RunningStatistics(NamedTuple):
    """Number, mean and sum of squared deviations of all rows so far, elementwise over a shape.

    Merging two of them gives the statistics of all their rows together (Chan et al. 1979).
    """

    rows: Float[Array, ""]
    mean: Float[Array, "*shape"]
    deviation: Float[Array, "*shape"]

    @property
    def variance(self) -> Float[Array, "*shape"]:
        """Population variance; 1 until there are two rows."""
        return jnp.where(self.rows > 1, self.deviation / jnp.maximum(self.rows, 1.0), 1.0)

    @property
    def std(self) -> Float[Array, "*shape"]:
        """Population standard deviation."""
        return jnp.sqrt(self.variance)


def empty(shape: tuple[int, ...]) -> RunningStatistics:
    """Return the statistics of no rows."""
    zeros = np.zeros(shape, np.float32)
    nothing: Any = (np.zeros((), np.float32), zeros, zeros.copy())  # on the host, not yet JAX's
    return RunningStatistics(*nothing)


def merge(one: RunningStatistics, other: RunningStatistics) -> RunningStatistics:
    """Return the statistics of both sets of rows together.

    n = n₁ + n₂,  μ = μ₁ + (μ₂ - μ₁) n₂/n,  D = D₁ + D₂ + (μ₂ - μ₁)² n₁ n₂/n

    Source: Chan, Golub & LeVeque 1979, eq. 2.1.
    """
    rows = one.rows + other.rows
    share = other.rows / jnp.maximum(rows, 1.0)
    apart = other.mean - one.mean
    deviation = one.deviation + other.deviation + jnp.square(apart) * one.rows * share
    return RunningStatistics(rows, one.mean + apart * share, deviation)


def of_rows(rows: Float[Array, " B *shape"], valid: Bool[Array, " B"]) -> RunningStatistics:
    """Return the statistics of the valid rows."""
    weight = valid.astype(rows.dtype).reshape(valid.shape + (1,) * (rows.ndim - 1))
    count = valid.sum().astype(rows.dtype)
    mean = jnp.where(weight > 0, rows, 0.0).sum(0) / jnp.maximum(count, 1.0)
    deviation = (jnp.square(jnp.where(weight > 0, rows - mean[None], 0.0))).sum(0)
    return RunningStatistics(count, mean, deviation)


def masked_mean(x: Float[Array, "*shape"], valid: Bool[Array, "*shape"]) -> Float[Array, ""]:
    """Return the mean over valid entries; 0 if there are none."""
    return jnp.where(valid, x, 0.0).sum() / jnp.maximum(valid.sum().astype(x.dtype), 1.0)


def masked_std(x: Float[Array, "*shape"], valid: Bool[Array, "*shape"]) -> Float[Array, ""]:
    """Return the population standard deviation over valid entries; 0 if there are none."""
    return jnp.sqrt(masked_mean(jnp.square(x - masked_mean(x, valid)), valid))


def standardize(x: Float[Array, "*shape"], valid: Bool[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return (x - mean) / (std + 1e-8), both over valid entries."""
    return (x - masked_mean(x, valid)) / (masked_std(x, valid) + 1e-8)


def explained_variance(
    predicted: Float[Array, "*shape"],
    target: Float[Array, "*shape"],
    valid: Bool[Array, "*shape"],
) -> Float[Array, ""]:
    """Return 1 - Var[target - predicted] / Var[target] over valid entries; NaN if undefined."""
    variance = jnp.square(masked_std(target, valid))
    left_over = jnp.square(masked_std(target - predicted, valid))
    known = (valid.sum() > 1) & (variance > 0)
    return jnp.where(known, 1.0 - left_over / jnp.where(known, variance, 1.0), jnp.nan)
