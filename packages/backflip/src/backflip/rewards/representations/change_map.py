"""The change map: where an image has just changed.

A game rewards what happens at a place: the ball leaves on the right, a brick breaks. With f_t the
newest frame (each channel on its own) and h the largest value of a pixel, the map of a step is

    m = pool(blur(min(|f_{t+1} - f_t| / (0.15 h), 1)))

with at most 21 x 21 cells: a Gaussian window of half a cell's width around each cell's centre. The
features, in three groups, are

    constant   1                         (its sum over a clip is the number of alive steps)
    change     m_i / (s_i + 0.02 max s)  with s_i the standard deviation of m_i over observed steps
    action     one-hot a for discrete actions, else a scaled to [-1, 1]

so a rare place counts as much as a busy one. The map of a step is kept in bytes. The model assumes
that the camera does not move.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.inputs import SMALL_SIDE, frame_channels, one_hot_action, scaled_action
from backflip.rewards.representations.interface import Inputs, Seen
from runshelf.errors import UsageError

LARGEST_CHANGE = 0.15  # share of the largest value of a pixel; a larger change counts as this
BLUR = 0.5  # standard deviation of the window, in cells
LEAST_DEVIATION = 0.02  # share of the largest deviation that is added to every deviation
POWER = 1.0  # of the deviation that a number is divided by
MOST_NUMBERS = 2_048  # of a map; with more channels, their largest change is one channel
BYTE = 255.0
ROWS_AT_ONCE = 4_096


class ChangeScale(NamedTuple):
    """What each number of a map, in bytes, is divided by."""

    divisor: Float[Array, " D"]


@dataclass(frozen=True)
class ChangeMap:
    """The representation of one environment; see the module.

    Raises:
        UsageError: its observations are not images.
    """

    spec: EnvSpec
    name: ClassVar[str] = "change_map"

    def __post_init__(self) -> None:
        """Refuse observations that are not images."""
        if not self.spec.is_image:
            raise UsageError(
                f"reward model `{self.name}` is for images, and `{self.spec.id}` has none; "
                "try --set reward_model=intervals"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the three groups."""
        action = self.spec.action
        actions = action.n if isinstance(action, Discrete) else action.shape[0]
        return (1, map_size(self.spec), actions)

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return the maps of the steps, as `after`."""
        maps = change_maps(self.spec, obs, next_obs)
        return Seen(jnp.zeros((maps.shape[0], 0), jnp.uint8), maps)

    def initial(self) -> Inputs:
        """Return divisors of one."""
        return Inputs(ChangeScale(jnp.ones(map_size(self.spec))))

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the divisors for maps (n, D)."""
        del before
        return Inputs(ChangeScale(jnp.asarray(divisors(after, 1.0), jnp.float32)))

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return all groups."""
        del before
        scaled = after.astype(jnp.float32) / inputs.encoder.divisor[None]
        groups = [jnp.ones((scaled.shape[0], 1)), scaled, action_features(self.spec, action)]
        return jnp.concatenate(groups, axis=1)


def change_maps(spec: EnvSpec, obs: Any, next_obs: Any) -> UInt8[Array, "B D"]:
    """Return the maps of B steps in bytes, from the newest frames before and after."""
    limit = LARGEST_CHANGE * float(spec.observation.high.max())
    change = jnp.abs(next_obs.astype(jnp.float32) - obs.astype(jnp.float32))
    change = jnp.minimum(change / limit, 1.0)
    if merges(spec):
        change = change.max(-1, keepdims=True)
    return pooled(change)


def pooled(images: Float[Any, "B H W C"]) -> UInt8[Array, "B D"]:
    """Return images of [0, 1], blurred and pooled to a map of bytes."""
    rows, columns = (jnp.asarray(_window(side)) for side in images.shape[1:3])
    # One large product along the rows of all images: twice as fast as one product for each.
    found = jnp.swapaxes(images, 2, 3) @ columns.T
    found = jnp.einsum("bhcs,rh->brsc", found, rows)
    return jnp.rint(found * BYTE).astype(jnp.uint8).reshape(images.shape[0], -1)


def map_size(spec: EnvSpec) -> int:
    """Return D, how many numbers a map has."""
    return _cells(spec) * (1 if merges(spec) else frame_channels(spec))


def _cells(spec: EnvSpec) -> int:
    height, width, _ = spec.observation.shape
    return min(height, SMALL_SIDE) * min(width, SMALL_SIDE)


def merges(spec: EnvSpec) -> bool:
    """Return whether all channels are one channel of a map, because there are many."""
    return _cells(spec) * frame_channels(spec) > MOST_NUMBERS


def _window(side: int) -> np.ndarray:
    """Return the (cells, side) matrix of Gaussian weights that blurs and pools one axis."""
    cells = min(side, SMALL_SIDE)
    width = side / cells
    centres = (np.arange(cells) + 0.5) * width
    away = (np.arange(side) + 0.5 - centres[:, None]) / (BLUR * width)
    weights = np.exp(-0.5 * np.square(away))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def divisors(numbers: UInt8[np.ndarray, "n D"], least: float) -> Float[np.ndarray, " D"]:
    """Return s + max(0.02 max s, least), with s the standard deviation of each number."""
    deviation = _deviations(numbers)
    floor = max(LEAST_DEVIATION * float(deviation.max()), least)
    return (deviation + floor) ** POWER


def _deviations(maps: UInt8[np.ndarray, "n D"]) -> Float[np.ndarray, " D"]:
    """Return the standard deviation of each number, in levels of a byte."""
    total, squares = np.zeros((2, maps.shape[1]))
    for start in range(0, len(maps), ROWS_AT_ONCE):
        some = maps[start : start + ROWS_AT_ONCE].astype(np.float64)
        total += some.sum(0)
        squares += np.square(some).sum(0)
    mean = total / len(maps)
    return np.sqrt(np.maximum(squares / len(maps) - np.square(mean), 0.0))


def action_features(spec: EnvSpec, action: Any) -> Float[Array, "B A"]:
    """Return discrete actions as one-hot vectors, others scaled to [-1, 1]."""
    if isinstance(spec.action, Discrete):
        return one_hot_action(spec.action.n, action)
    return scaled_action(spec.action, action)
