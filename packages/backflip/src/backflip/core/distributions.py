"""Distributions over actions.

All methods reduce over the last axis of their parameters and keep leading axes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

LOG_2PI = float(np.log(2 * np.pi))


class Categorical(NamedTuple):
    """One of n choices, p_i = exp(l_i) / Σ_j exp(l_j)."""

    logits: Float[Array, "*batch n"]

    def sample(self, key: PRNGKeyArray) -> Int[Array, "*batch"]:
        """Draw a choice by the Gumbel-max rule."""
        return jnp.argmax(self.logits + jax.random.gumbel(key, self.logits.shape), -1)

    def mode(self) -> Int[Array, "*batch"]:
        """Return the most probable choice."""
        return jnp.argmax(self.logits, -1)

    def log_prob(self, choice: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Return log p(choice)."""
        choices = jax.lax.broadcasted_iota(choice.dtype, self.logits.shape, choice.ndim)
        chosen = choice[..., None] == choices
        return jnp.where(chosen, jax.nn.log_softmax(self.logits), 0.0).sum(-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return -Σ p_i log p_i, in nats, between 0 and log n."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, -1)


class DiagonalNormal(NamedTuple):
    """Independent normals: x_i = μ_i + σ_i ε_i with ε_i ~ N(0, 1)."""

    mean: Float[Array, "*batch n"]
    log_std: Float[Array, "*#batch n"]

    def sample(self, key: PRNGKeyArray) -> Float[Array, "*batch n"]:
        """Draw x; its gradient reaches μ and σ."""
        return self.at(jax.random.normal(key, self.mean.shape))

    def at(self, noise: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Return μ + σ ε of the noise ε."""
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> Float[Array, "*batch n"]:
        """Return μ."""
        return self.mean

    def log_prob(self, x: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Return Σ_i -½ ((x_i - μ_i)/σ_i)² - log σ_i - ½ log 2π."""
        z = (x - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * jnp.square(z) - self.log_std - 0.5 * LOG_2PI, -1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return Σ_i log σ_i + ½ log 2πe, in nats; may be negative."""
        each = self.log_std + 0.5 * (LOG_2PI + 1.0)
        return jnp.broadcast_to(each, self.mean.shape).sum(-1)


class TanhNormal(NamedTuple):
    """y = tanh(x) with x diagonal normal: bounded to (-1, 1).

    Source: Haarnoja et al. 2018, arXiv:1801.01290, appendix C; the log-derivative in its stable
    form log(1 - tanh²x) = 2 (log 2 - x - softplus(-2x)).
    """

    mean: Float[Array, "*batch n"]
    log_std: Float[Array, "*#batch n"]

    def sample(self, key: PRNGKeyArray) -> Float[Array, "*batch n"]:
        """Draw y; its gradient reaches μ and σ."""
        return jnp.tanh(DiagonalNormal(self.mean, self.log_std).sample(key))

    def transform(
        self, noise: Float[Array, "*batch n"]
    ) -> tuple[Float[Array, "*batch n"], Float[Array, "*batch"]]:
        """Return y = tanh(μ + σ ε) of the noise ε and log p(y); gradients reach μ and σ."""
        x = self.mean + jnp.exp(self.log_std) * noise
        density = -0.5 * jnp.square(noise) - self.log_std - 0.5 * LOG_2PI
        return jnp.tanh(x), (density - _log_tanh_derivative(x)).sum(-1)

    def mode(self) -> Float[Array, "*batch n"]:
        """Return tanh(μ), the median."""
        return jnp.tanh(self.mean)

    def log_prob(self, y: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Return log p(y); y is clipped to ±(1 - 1e-6), because x would be infinite at ±1."""
        x = jnp.arctanh(jnp.clip(y, -1 + 1e-6, 1 - 1e-6))
        normal = DiagonalNormal(self.mean, self.log_std)
        return normal.log_prob(x) - _log_tanh_derivative(x).sum(-1)


def _log_tanh_derivative(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return 2.0 * (jnp.log(2.0) - x - jax.nn.softplus(-2.0 * x))
