"""Inputs of reward models: observations as vectors, actions in [-1, 1], encoded clips."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Num

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.interface import LabelledComparison, ObservedClip

SMALL_SIDE = 21  # images are shrunk to this side
CLIPS_AT_ONCE = 16  # batch size of `apply_to_steps`, fixed so that one program is compiled


class EncodedClip(NamedTuple):
    """A clip of L steps with what is kept of observations; several clips may be joined."""

    before: Num[np.ndarray, "L d"]
    action: np.ndarray
    after: Num[np.ndarray, "L D"]
    alive: Bool[np.ndarray, " L"]


class ClipEncoder:
    """Encodes clips, and caches the encoded clips of labelled comparisons.

    Args:
        see: (newest frames before and after B steps) -> what is kept of them.
    """

    def __init__(self, see: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self._see = see
        self._known: dict[int, tuple[EncodedClip, EncodedClip]] = {}

    def encode(self, clip: ObservedClip) -> EncodedClip:
        """Return the encoded clip."""
        before, after = map(np.asarray, self._see(clip.obs, clip.next_obs))
        return EncodedClip(before, clip.action, after, clip.alive)

    def labelled(self, comparisons: Iterable[LabelledComparison]) -> list[EncodedClip]:
        """Return the encoded clips of comparisons, in the order left, right, left, right, ..."""
        return [clip for one in comparisons for clip in self._pair(one)]

    def _pair(self, comparison: LabelledComparison) -> tuple[EncodedClip, EncodedClip]:
        if comparison.query not in self._known:
            left, right = comparison.clips()
            self._known[comparison.query] = self.encode(left), self.encode(right)
        return self._known[comparison.query]


def empty_clip(spec: EnvSpec, length: int) -> EncodedClip:
    """Return a clip of zeros in which no step is alive."""
    vectors = np.zeros((length, observation_size(spec)), np.float32)
    space = spec.action
    if isinstance(space, Discrete):
        action = np.zeros(length, np.int32)
    else:
        action = np.zeros((length, *space.shape), space.dtype)
    return EncodedClip(vectors, action, vectors, np.zeros(length, bool))


def apply_to_steps(
    function: Callable[[Any, Any, Any], Float[Array, "steps outputs"]], clips: Sequence[EncodedClip]
) -> Float[np.ndarray, "clips L outputs"]:
    """Apply a function of (before, action, after) to every step of one or more clips.

    The batch size is fixed, so one compiled program serves any number of clips.
    """
    out: list[np.ndarray] = []
    for start in range(0, len(clips), CLIPS_AT_ONCE):
        some = list(clips[start : start + CLIPS_AT_ONCE])
        filled = some + some[-1:] * (CLIPS_AT_ONCE - len(some))
        joined = EncodedClip(*(np.concatenate(field) for field in zip(*filled, strict=True)))
        values = function(joined.before, joined.action, joined.after)
        rows = np.asarray(values).reshape(CLIPS_AT_ONCE, -1, values.shape[-1])
        out.append(rows[: len(some)])
    return np.concatenate(out)


def observation_vectors(spec: EnvSpec, frames: Any) -> Float[Array, "B D"]:
    """Return observations (newest frames) as vectors: images in [0, 1], shrunk to 21x21."""
    if not spec.is_image:
        return jnp.asarray(frames, jnp.float32)
    rows, columns = (jnp.asarray(resize_matrix(side)) for side in frames.shape[1:3])
    grey = frames.astype(jnp.float32) / float(spec.observation.high.max())
    shrunk = jnp.einsum("bhwc,rh,sw->brsc", grey, rows, columns)
    return shrunk.reshape(frames.shape[0], -1)


def observation_size(spec: EnvSpec) -> int:
    """Return D, the length of an observation's vector."""
    if not spec.is_image:
        return spec.observation.shape[0]
    return SMALL_SIDE**2 * frame_channels(spec)


def see_vectors(spec: EnvSpec, obs: Any, next_obs: Any) -> tuple[Any, Any]:
    """Return the vectors of the observations before and after B steps."""
    return _vectors(spec, obs), _vectors(spec, next_obs)


# One program serves all models of an environment, because `EnvSpec` is compared by identity.
_vectors = jax.jit(observation_vectors, static_argnums=0)


def frame_channels(spec: EnvSpec) -> int:
    """Return the channels of one frame of an image observation."""
    return spec.observation.shape[2] // spec.frame_stack


def scaled_action(space: Box, action: Any) -> Float[Array, "B A"]:
    """Return continuous actions; bounded components are clipped and scaled to [-1, 1]."""
    low, high = jnp.asarray(space.low)[None], jnp.asarray(space.high)[None]
    a = jnp.clip(action, low, high)
    bounded = jnp.isfinite(low) & jnp.isfinite(high)
    return jnp.where(bounded, 2.0 * (a - low) / jnp.where(bounded, high - low, 1.0) - 1.0, a)


def one_hot_action(choices: int, action: Any) -> Float[Array, "B choices"]:
    """Return discrete actions as one-hot vectors."""
    return (action[:, None] == jnp.arange(choices)[None]).astype(jnp.float32)


def resize_matrix(side: int) -> np.ndarray:
    """Return the (21, side) matrix of triangular weights that resizes one axis without aliasing."""
    width = side / SMALL_SIDE
    centres = (np.arange(SMALL_SIDE) + 0.5) * width
    away = np.abs(np.arange(side) + 0.5 - centres[:, None]) / max(width, 1.0)
    weights = np.maximum(1.0 - away, 0.0)
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)
