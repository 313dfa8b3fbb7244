"""Slow quadratic features of the observation, their change, and the action.

Observations are first encoded as a short vector z, without labels. A vector of at most
`LARGEST_VECTOR` numbers is standardised. A longer vector, or an image (resized to 21x21), is
projected on its slowest directions: those that vary most over all data and least from one step to
the next (linear slow feature analysis, Wiskott & Sejnowski 2002). The positions of objects change
slowly and noise does not, so a reward on z can be learned from few labels.

A transition's features are then, in six parts, with δ the standardised change z' - z and
m = (z + z')/2 the middle:

    constant         1                   (its sum over a clip is the number of alive steps)
    state            z_i
    state products   z_i z_j (i <= j)
    change           δ_i
    change products  m_i δ_j
    action           a_i, a_i a_j (i <= j), z_i a_j;  one-hot a for discrete actions

Each part is a group with a prior variance of its own if z has the observed numbers. Products are
many more than numbers, so a common variance would hide a reward of one number, such as "turn
backward", from the first labels. A slow direction means nothing alone, so there `state` and
`change` are one group each with their products.

The reward is linear in the features. Quadratic rewards (which include most of MuJoCo's, 1706.03741,
footnote 7) are exact, and so is a reward for approaching a goal, up to the curvature of z. The
change is multiplied by the middle m, so moving there and back sums to zero: a policy gains nothing
by oscillating.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.inputs import (
    SMALL_SIDE,
    frame_channels,
    observation_size,
    observation_vectors,
    one_hot_action,
    resize_matrix,
    scaled_action,
)
from backflip.rewards.representations.interface import Inputs, Seen

LARGEST_VECTOR = 32
LEAST_DEVIATION = 1e-3  # that a number is divided by, and a change of a number of a vector
SLOW_FEATURES = 16
# z is clipped to these, in standard deviations: a product of rare values must not dominate.
VECTOR_LIMIT, SLOW_LIMIT = 5.0, 2.0
# Variance of the noise assumed on every number, relative to the mean variance. Without it, pixels
# that hardly ever change would be the slowest features.
FLICKER = 3e-3
# Least share of the image's change that lies along a slow direction; a smaller one is rounding.
LEAST_SHARE = 1e-3


class Encoder(NamedTuple):
    """z = (x - mean) P and δ = (z' - z) / change, with x an observation as a vector."""

    mean: Float[Array, " D"]
    projection: Float[Array, "D k"]
    change: Float[Array, " k"]


class Parts(NamedTuple):
    """How many features each part holds."""

    constant: int
    state: int
    state_products: int
    change: int
    change_products: int
    action: int


@dataclass(frozen=True)
class SlowFeatures:
    """The representation of one environment; see the module."""

    spec: EnvSpec

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the groups: six, or four of slow directions."""
        parts = part_sizes(self.spec)
        if not is_projected(self.spec):
            return parts
        state, change = parts.state + parts.state_products, parts.change + parts.change_products
        return (parts.constant, state, change, parts.action)

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return the vectors of the observations before and after; of small images the pixels."""
        return Seen(*(self._kept(x) for x in (obs, next_obs)))

    def vectors(self, kept: Any) -> Float[Any, "B d"]:
        """Return the vectors of observations of which `see` kept this; of small images f."""
        if not self._is_small:
            return kept
        return kept.astype(jnp.float32) / float(self.spec.observation.high.max())

    def encoder_of_vectors(self, encoder: Encoder) -> Encoder:
        """Return the encoder of `vectors`.

        That of small images is for enlarged ones, x = R f: z = (x - mean) P = (f - R⁺ mean) RᵀP.
        """
        if not self._is_small:
            return encoder
        height, width, channels = self._frame
        rows, columns = resize_matrix(height), resize_matrix(width)

        def folded(x: Array, by_row: np.ndarray, by_column: np.ndarray) -> Array:
            parts = x.reshape(SMALL_SIDE, SMALL_SIDE, channels, -1)
            found = jnp.einsum("hwck,hr,ws->rsck", parts, by_row, by_column)
            return found.reshape(height * width * channels, -1)

        inverse = (np.linalg.pinv(side).T for side in (rows, columns))
        mean = folded(encoder.mean, *inverse)[:, 0]
        return Encoder(mean, folded(encoder.projection, rows, columns), encoder.change)

    def initial(self) -> Inputs:
        """Return an encoder that maps everything to zero."""
        size, k = observation_size(self.spec), encoded_size(self.spec)
        return Inputs(Encoder(jnp.zeros(size), jnp.zeros((size, k)), jnp.ones(k)))

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the encoder fitted to what is kept of observations and their successors."""
        if self._is_small:
            images = (
                np.asarray(self.vectors(x)).reshape(-1, *self._frame) for x in (before, after)
            )
            return Inputs(fit_small_encoder(*images))
        return Inputs(fit_encoder(before, after))

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return the six parts."""
        x, next_x = self.vectors(before), self.vectors(after)
        return features(self.spec, self.encoder_of_vectors(inputs.encoder), x, action, next_x)

    def _kept(self, frames: Any) -> Num[Any, "B d"]:
        if self._is_small:
            return frames.reshape(frames.shape[0], -1)
        return observation_vectors(self.spec, frames)

    @property
    def _frame(self) -> tuple[int, ...]:
        return (*self.spec.observation.shape[:2], frame_channels(self.spec))

    @property
    def _is_small(self) -> bool:
        """Whether images have fewer pixels than the vectors that they are enlarged to."""
        if not self.spec.is_image:
            return False
        height, width, channels = self._frame
        fewer = max(height, width) <= SMALL_SIDE and height * width < SMALL_SIDE**2
        return fewer and height * width * channels > LARGEST_VECTOR


def fit_encoder(before: np.ndarray, after: np.ndarray, size: int | None = None) -> Encoder:
    """Return the encoder fitted to observation vectors (n, D) and their successors.

    Args:
        before: the vectors.
        after: their successors.
        size: how many numbers the assumed noise is spread over; by default D.
    """
    mean, moved = before.mean(0, np.float64).astype(before.dtype), after - before
    least = np.float32(1e-6)
    if before.shape[1] <= LARGEST_VECTOR:
        least = np.float32(LEAST_DEVIATION)  # smaller changes may be rounding errors of a constant
        deviation = before.std(0, np.float64).astype(before.dtype)
        projection = np.diag(1.0 / np.maximum(deviation, LEAST_DEVIATION))
    else:
        projection = _slow_directions(before - mean, moved, size or before.shape[1])
        least = np.maximum(least, _least_change(projection, moved))
    change = np.maximum((moved @ projection).std(0), least)
    return Encoder(*(jnp.asarray(x, jnp.float32) for x in (mean, projection, change)))


def _slow_directions(centred: np.ndarray, moved: np.ndarray, noisy: int) -> np.ndarray:
    """Return the directions of least E[(vᵀΔx)²] subject to vᵀ Cov(x) v = 1, slowest first.

    Independent noise of variance ρ on every number adds ρI to Cov(x) and 2ρI to E[Δx Δxᵀ].
    """
    count, size = centred.shape
    covariance, moves = centred.T @ centred / count, moved.T @ moved / count
    noise = FLICKER * np.trace(covariance) / noisy * np.eye(size)
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


def fit_small_encoder(
    before: Float[np.ndarray, "n h w c"], after: Float[np.ndarray, "n h w c"]
) -> Encoder:
    """Return the encoder of images smaller than the vectors x that they are enlarged to.

    Enlarging is x = Q S f on each axis, with orthonormal columns of Q. The slow directions lie in
    the span of Q, so they are those of g = S f, which has fewer numbers: P = Q P_g. The noise is
    that of all numbers of x.
    """
    axes = [np.linalg.qr(resize_matrix(side)) for side in before.shape[1:3]]
    (q, s), (q2, s2) = axes
    channels = before.shape[3]

    def reduced(frames: np.ndarray) -> Float[np.ndarray, "n d"]:
        found = np.einsum("bhwc,rh,sw->brsc", frames, s, s2, optimize=True)
        return found.reshape(len(frames), -1)

    def enlarged(x: np.ndarray) -> Array:
        parts = x.reshape(q.shape[1], q2.shape[1], channels, -1)
        found = np.einsum("rsck,hr,ws->hwck", parts, q, q2, optimize=True)
        return jnp.asarray(found.reshape(SMALL_SIDE**2 * channels, -1), jnp.float32)

    small = fit_encoder(reduced(before), reduced(after), SMALL_SIDE**2 * channels)
    mean, projection = (enlarged(np.asarray(x)) for x in (small.mean, small.projection))
    return Encoder(mean[:, 0], projection, small.change)


def part_sizes(spec: EnvSpec) -> Parts:
    """Return the number of features in each part."""
    k = encoded_size(spec)
    if isinstance(spec.action, Discrete):
        actions = spec.action.n
    else:
        a = spec.action.shape[0]
        actions = a + a * (a + 1) // 2 + k * a
    return Parts(1, k, k * (k + 1) // 2, k, k * k, actions)


def features(
    spec: EnvSpec,
    encoder: Encoder,
    before: Float[Array, "B D"],
    action: Any,
    after: Float[Array, "B D"],
) -> Float[Array, "B F"]:
    """Return the features of transitions, with the parts concatenated."""
    z, next_z = encode(encoder, before), encode(encoder, after)
    limit = _limit(before.shape[1])
    change = jnp.clip((after - before) @ encoder.projection / encoder.change[None], -limit, limit)
    groups = [
        jnp.ones((z.shape[0], 1)),
        jnp.concatenate([z, products(z)], axis=1),
        jnp.concatenate([change, _outer((z + next_z) / 2, change)], axis=1),
        *_action_features(spec.action, z, action),
    ]
    return jnp.concatenate(groups, axis=1)


def encode(encoder: Encoder, x: Float[Array, "B D"]) -> Float[Array, "B k"]:
    """Return z, clipped to a few standard deviations."""
    limit = _limit(x.shape[1])
    return jnp.clip((x - encoder.mean[None]) @ encoder.projection, -limit, limit)


def _limit(size: int) -> float:
    return VECTOR_LIMIT if size <= LARGEST_VECTOR else SLOW_LIMIT


def encoded_size(spec: EnvSpec) -> int:
    """Return k, the length of z."""
    return SLOW_FEATURES if is_projected(spec) else spec.observation.shape[0]


def is_projected(spec: EnvSpec) -> bool:
    """Return whether z has slow directions of an observation, and not its own numbers."""
    return spec.is_image or spec.observation.shape[0] > LARGEST_VECTOR


def _action_features(space: Box | Discrete, z: Array, action: Any) -> list[Array]:
    if isinstance(space, Discrete):
        return [one_hot_action(space.n, action)]
    a = scaled_action(space, action)
    return [a, products(a), _outer(z, a)]


def products(x: Float[Array, "B k"]) -> Float[Array, "B p"]:
    """Return the p = k (k + 1) / 2 products x_i x_j with i <= j."""
    i, j = np.triu_indices(x.shape[1])
    return x[:, i] * x[:, j]


def _outer(x: Float[Array, "B k"], y: Float[Array, "B m"]) -> Float[Array, "B km"]:
    return (x[:, :, None] * y[:, None, :]).reshape(x.shape[0], -1)
