"""Slow quadratic features and thresholds of each number: an additive function of each number.

A rule such as "the torso is above 0.7 m" is not quadratic. With z' the encoded observation after
the step (`backflip.rewards.representations.slow`), there is one more group:

    threshold  σ(2 (z'_i - q_ik) / w_ik), q_ik the k-th knot of z_i

For each number of z it holds a smooth function that may rise and fall at `knots` places: a
generalised additive model (Hastie & Tibshirani 1986). Each function is constant outside its knots.

Half of the knots lie where the observed data is dense, half are spread over its range: with F the
distribution function of z_i, the knots are equally spaced quantiles of

    (F(z) + (z - min) / (max - min)) / 2

Quantiles of F alone leave no knots where a rule matters if that is rare. A fallen pendulum lies at
the end of its range in 99 of 100 env steps, and one knot of 31 would be left for all other angles.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import EnvSpec
from backflip.rewards.representations.interface import Inputs, Seen
from backflip.rewards.representations.slow import Encoder, SlowFeatures, encoded_size

KNOTS = 31  # thresholds of each number of z
FEW_KNOTS = 7  # of runs before 2026-11-25
NARROWEST = 0.05  # width of a threshold, in standard deviations; of numbers with few values


class Thresholds(NamedTuple):
    """Where the functions of the threshold group rise or fall: knots q and widths w of z."""

    knots: Float[Array, "k K"]
    widths: Float[Array, "k K"]


@dataclass(frozen=True)
class AdditiveFeatures:
    """The representation of one environment; see the module.

    Attributes:
        spec: of the environment.
        knots: K, thresholds of each number of z.
    """

    spec: EnvSpec
    knots: int = KNOTS

    @property
    def slow(self) -> SlowFeatures:
        """The other groups."""
        return SlowFeatures(self.spec)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of all groups."""
        return (*self.slow.sizes, encoded_size(self.spec) * self.knots)

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return the vectors of the observations before and after."""
        return self.slow.see(obs, next_obs)

    def initial(self) -> Inputs:
        """Return an encoder that maps everything to zero, and knots at zero."""
        ones = jnp.ones((encoded_size(self.spec), self.knots))
        return Inputs(self.slow.initial().encoder, Thresholds(0 * ones, ones))

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the encoder, and thresholds at quantiles of the observations after."""
        encoder = self.slow.fit(before, after).encoder
        vectors = np.asarray(self.slow.vectors(after))
        linear = self.slow.encoder_of_vectors(encoder)
        return Inputs(encoder, fit_thresholds(linear, vectors, self.knots))

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return all groups."""
        encoder = self.slow.encoder_of_vectors(inputs.encoder)
        groups = self.slow.features(inputs, before, action, after)
        z = (self.slow.vectors(after) - encoder.mean[None]) @ encoder.projection
        return jnp.concatenate([groups, passed(inputs.thresholds, z)], axis=1)


def fit_thresholds(encoder: Encoder, after: np.ndarray, knots: int = KNOTS) -> Thresholds:
    """Return the knots and widths of z, the encoded observations after each step."""
    return knots_of((after - np.asarray(encoder.mean)) @ np.asarray(encoder.projection), knots)


def knots_of(z: np.ndarray, knots: int) -> Thresholds:
    """Return the knots of each number of z, (rows, k), and widths as large as they are apart."""
    places = np.stack([spread_knots(number, knots) for number in z.T])
    widths = np.maximum(np.gradient(places, axis=1), NARROWEST)
    return Thresholds(*(jnp.asarray(x, jnp.float32) for x in (places, widths)))


def spread_knots(values: Float[np.ndarray, " rows"], count: int) -> Float[np.ndarray, " count"]:
    """Return equally spaced quantiles of a mixture of the values and their range."""
    z = np.sort(values.astype(np.float64))
    below = (np.arange(len(z)) + 0.5) / len(z)
    along = (z - z[0]) / max(z[-1] - z[0], 1e-12)
    return np.interp((np.arange(count) + 0.5) / count, (below + along) / 2, z)


def passed(thresholds: Thresholds, z: Float[Array, "B k"]) -> Float[Array, "B kK"]:
    """Return how far each number is above each of its knots, from 0 to 1."""
    distance = (z[:, :, None] - thresholds.knots[None]) / thresholds.widths[None]
    return jax.nn.sigmoid(2.0 * distance).reshape(z.shape[0], -1)
