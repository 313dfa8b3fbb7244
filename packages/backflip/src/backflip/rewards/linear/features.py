"""Features of the linear model: slow features of the observation, their change, and the action.

Observations are first encoded as a short vector z, without labels. A vector of at most
`LARGEST_VECTOR` numbers is standardised. A longer vector, or an image (resized to 21x21), is
projected on its slowest directions: those that vary most over all data and least from one step to
the next (linear slow feature analysis, Wiskott & Sejnowski 2002). The positions of objects change
slowly and noise does not, so a reward on z can be learned from few labels.

A transition's features are then, in four or five groups, with δ the standardised change z' - z and
m = (z + z')/2 the middle:

    constant   1                         (its sum over a clip is the number of alive steps)
    state      z_i, z_i z_j (i <= j)
    change     δ_i, m_i δ_j
    action     a_i, a_i a_j (i <= j), z_i a_j;  one-hot a for discrete actions
    threshold  σ(2 (z'_i - q_ik) / w_ik), q_ik the k-th knot of z_i; only in the additive model

The reward is linear in the features. Quadratic rewards (which include most of MuJoCo's, 1706.03741,
footnote 7) are exact, and so is a reward for approaching a goal, up to the curvature of z. The
change is multiplied by the middle m, so moving there and back sums to zero: a policy gains nothing
by oscillating.

A rule such as "the torso is above 0.7 m" is not quadratic. The threshold group holds for each
number of z a smooth function that may rise and fall at `KNOTS` quantiles of the observed data: a
generalised additive model (Hastie & Tibshirani 1986). Each function is constant outside its knots.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.inputs import one_hot_action, scaled_action

LARGEST_VECTOR = 32
SLOW_FEATURES = 16
# z is clipped to these, in standard deviations: a product of rare values must not dominate.
VECTOR_LIMIT, SLOW_LIMIT = 5.0, 2.0
# Variance of the noise assumed on every number, relative to the mean variance. Without it, pixels
# that hardly ever change would be the slowest features.
FLICKER = 3e-3
# Least share of the image's change that lies along a slow direction; a smaller one is rounding.
LEAST_SHARE = 1e-3
KNOTS = 7  # thresholds of each number of z
NARROWEST = 0.05  # width of a threshold, in standard deviations; of numbers with few values


class Encoder(NamedTuple):
    """z = (x - mean) P and δ = (z' - z) / change, with x an observation as a vector."""

    mean: Float[Array, " D"]
    projection: Float[Array, "D k"]
    change: Float[Array, " k"]


class Thresholds(NamedTuple):
    """Where the functions of the threshold group rise or fall: knots q and widths w of z."""

    knots: Float[Array, "k K"]
    widths: Float[Array, "k K"]


class Groups(NamedTuple):
    """How many features each group holds."""

    constant: int
    state: int
    change: int
    action: int
    threshold: int = 0

    @property
    def used(self) -> tuple[int, ...]:
        """The sizes of all groups that are not empty."""
        return tuple(size for size in self if size)


def fit_encoder(before: np.ndarray, after: np.ndarray) -> Encoder:
    """Return the encoder fitted to observation vectors (n, D) and their successors."""
    mean, moved = before.mean(0), after - before
    least = np.float32(1e-6)
    if before.shape[1] <= LARGEST_VECTOR:
        projection = np.diag(1.0 / np.maximum(before.std(0), 1e-3))
    else:
        projection = _slow_directions(before - mean, moved)
        least = np.maximum(least, _least_change(projection, moved))
    change = np.maximum((moved @ projection).std(0), least)
    return Encoder(*(jnp.asarray(x, jnp.float32) for x in (mean, projection, change)))


def fit_thresholds(encoder: Encoder, after: np.ndarray) -> Thresholds:
    """Return knots at equally spaced quantiles of each number of z, as wide as they are apart."""
    z = (after - np.asarray(encoder.mean)) @ np.asarray(encoder.projection)
    knots = np.quantile(z, (np.arange(KNOTS) + 0.5) / KNOTS, axis=0).T
    widths = np.maximum(np.gradient(knots, axis=1), NARROWEST)
    return Thresholds(*(jnp.asarray(x, jnp.float32) for x in (knots, widths)))


def _slow_directions(centred: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return the directions of least E[(vᵀΔx)²] subject to vᵀ Cov(x) v = 1, slowest first.

    Independent noise of variance ρ on every number adds ρI to Cov(x) and 2ρI to E[Δx Δxᵀ].
    """
    count, size = centred.shape
    covariance, moves = centred.T @ centred / count, moved.T @ moved / count
    noise = FLICKER * np.trace(covariance) / size * np.eye(size)
    variances, axes = np.linalg.eigh(covariance + noise)
    whiten = axes / np.sqrt(variances)
    _, rotation = np.linalg.eigh(whiten.T @ (moves + 2 * noise) @ whiten)
    return whiten @ rotation[:, : min(SLOW_FEATURES, size)]


def _least_change(projection: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return the least change of each direction that is not rounding noise.

    If images differ in fewer than `SLOW_FEATURES` directions, the slowest directions are those in
    which nothing changes. What float32 leaves of their change must not be scaled to size 1.
    """
    length = np.sqrt(np.square(moved).sum(1).mean())
    return LEAST_SHARE * length * np.linalg.norm(projection, axis=0)


def group_sizes(spec: EnvSpec, knots: int = 0) -> Groups:
    """Return the number of features in each group, with `knots` thresholds of each number."""
    k = encoded_size(spec)
    state, change = k + k * (k + 1) // 2, k + k * k
    if isinstance(spec.action, Discrete):
        return Groups(1, state, change, spec.action.n, k * knots)
    a = spec.action.shape[0]
    return Groups(1, state, change, a + a * (a + 1) // 2 + k * a, k * knots)


def distance_weights(spec: EnvSpec, groups: Groups) -> Float[np.ndarray, " F"]:
    """Return the weights of Σ z_i², the squared distance from the mean of the observed data."""
    k = encoded_size(spec)
    i, j = np.triu_indices(k)
    weights = np.zeros(sum(groups), np.float32)
    weights[groups.constant + k + np.flatnonzero(i == j)] = 1.0
    return weights


def features(
    spec: EnvSpec,
    encoder: Encoder,
    before: Float[Array, "B D"],
    action: Any,
    after: Float[Array, "B D"],
    thresholds: Thresholds | tuple[()] = (),
) -> Float[Array, "B F"]:
    """Return the features of transitions, with the groups concatenated."""
    z, next_z = encode(encoder, before), encode(encoder, after)
    limit = _limit(before.shape[1])
    change = jnp.clip((after - before) @ encoder.projection / encoder.change[None], -limit, limit)
    groups = [
        jnp.ones((z.shape[0], 1)),
        jnp.concatenate([z, _products(z)], axis=1),
        jnp.concatenate([change, _outer((z + next_z) / 2, change)], axis=1),
        *_action_features(spec.action, z, action),
    ]
    if isinstance(thresholds, Thresholds):
        groups.append(_passed(thresholds, (after - encoder.mean[None]) @ encoder.projection))
    return jnp.concatenate(groups, axis=1)


def encode(encoder: Encoder, x: Float[Array, "B D"]) -> Float[Array, "B k"]:
    """Return z, clipped to a few standard deviations."""
    limit = _limit(x.shape[1])
    return jnp.clip((x - encoder.mean[None]) @ encoder.projection, -limit, limit)


def _limit(size: int) -> float:
    return VECTOR_LIMIT if size <= LARGEST_VECTOR else SLOW_LIMIT


def encoded_size(spec: EnvSpec) -> int:
    """Return k, the length of z."""
    if spec.is_pixels:
        return SLOW_FEATURES
    size = spec.observation.shape[0]
    return size if size <= LARGEST_VECTOR else SLOW_FEATURES


def _action_features(space: Box | Discrete, z: Array, action: Any) -> list[Array]:
    if isinstance(space, Discrete):
        return [one_hot_action(space.n, action)]
    a = scaled_action(space, action)
    return [a, _products(a), _outer(z, a)]


def _passed(thresholds: Thresholds, z: Float[Array, "B k"]) -> Float[Array, "B kK"]:
    """Return how far each number is above each of its knots, from 0 to 1."""
    distance = (z[:, :, None] - thresholds.knots[None]) / thresholds.widths[None]
    return jax.nn.sigmoid(2.0 * distance).reshape(z.shape[0], -1)


def _products(x: Float[Array, "B k"]) -> Float[Array, "B p"]:
    i, j = np.triu_indices(x.shape[1])
    return x[:, i] * x[:, j]


def _outer(x: Float[Array, "B k"], y: Float[Array, "B m"]) -> Float[Array, "B km"]:
    return (x[:, :, None] * y[:, None, :]).reshape(x.shape[0], -1)
