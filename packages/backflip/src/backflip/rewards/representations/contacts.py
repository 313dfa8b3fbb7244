"""Contacts: what appears or disappears next to what, anywhere on a grid of cells.

A game on a grid rewards meetings: the player reaches gold, a shot hits a ship. Each channel of a
grid is a kind of object. With x the grid before a step and y the grid after it, in [0, 1],

    on_i = y_i (1 - x_i)      objects of kind i that appear
    off_i = x_i (1 - y_i)     objects of kind i that disappear
    near(z)_i                 the largest z_i within one cell, also diagonally

a contact of two kinds i and j is a sum over all cells, so it is the same wherever it happens:

    Σ p_i q_j   for p in {on, off, y} and q in {x, y, near(x), near(y)}

The features, in six groups, are the constant, the change map (`change_map`), the grid y, the counts
Σ p_i, the contacts, and the action. As in the change map, each number is divided by
s_i + 0.02 max s, with s_i its standard deviation over observed steps, for each group separately.
What is kept of a step are bytes, so counts and contacts end at 255.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from backflip.core.spec import EnvSpec
from backflip.networks.pixel_networks import GRID_SIDE
from backflip.rewards.inputs import frame_channels
from backflip.rewards.representations.change_map import (
    BYTE,
    LEAST_DEVIATION,
    ChangeMap,
    action_features,
    change_maps,
    divisors,
)
from backflip.rewards.representations.interface import Inputs, Seen
from runshelf.errors import UsageError

MOST_CHANNELS = 16  # the contacts are 12 times their square
EVENTS, GRIDS = 3, 4  # p and q above


class ContactScale(NamedTuple):
    """What each number of a step, in bytes, is divided by."""

    divisor: Float[Array, " D"]


@dataclass(frozen=True)
class Contacts:
    """The representation of one environment; see the module.

    Raises:
        UsageError: its observations are not grids of cells.
    """

    spec: EnvSpec

    def __post_init__(self) -> None:
        """Refuse observations that are not grids."""
        if not has_contacts(self.spec):
            raise UsageError(
                f"reward model `contacts` is for grids of at most {GRID_SIDE} x {GRID_SIDE} "
                f"cells and {MOST_CHANNELS} channels, and `{self.spec.id}` has observations of "
                f"shape {self.spec.observation.shape}; try --set reward_model=auto"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the six groups."""
        channels = frame_channels(self.spec)
        pairs = EVENTS * GRIDS * channels**2
        one, changes, actions = ChangeMap(self.spec).sizes
        cells = math.prod(self.spec.observation.shape[:2])
        return (one, changes, cells * channels, EVENTS * channels, pairs, actions)

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return change maps, grids, counts and contacts of the steps, as `after`."""
        x, y = (_cells(self.spec, frames) for frames in (obs, next_obs))
        counts, contacts = contacts_of(x, y)
        parts = [BYTE * y, counts, contacts]
        kept = [change_maps(self.spec, obs, next_obs), *map(_bytes, parts)]
        return Seen(jnp.zeros((obs.shape[0], 0), jnp.uint8), jnp.concatenate(kept, axis=1))

    def initial(self) -> Inputs:
        """Return divisors of one."""
        return Inputs(ContactScale(jnp.ones(sum(self.sizes[1:5]))))

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the divisors for the numbers (n, D) of steps."""
        del before
        ends = np.cumsum(self.sizes[1:4])
        parts = [divisors(part, LEAST_DEVIATION) for part in np.split(after, ends, axis=1)]
        return Inputs(ContactScale(jnp.asarray(np.concatenate(parts), jnp.float32)))

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return the six groups."""
        del before
        scaled = after.astype(jnp.float32) / inputs.encoder.divisor[None]
        groups = [jnp.ones((scaled.shape[0], 1)), scaled, action_features(self.spec, action)]
        return jnp.concatenate(groups, axis=1)


def has_contacts(spec: EnvSpec) -> bool:
    """Return whether observations are grids of cells with few channels."""
    if not spec.is_image:
        return False
    rows, columns = spec.observation.shape[:2]
    return max(rows, columns) <= GRID_SIDE and frame_channels(spec) <= MOST_CHANNELS


def contacts_of(
    x: Float[Array, "B H W C"], y: Float[Array, "B H W C"]
) -> tuple[Float[Array, "B 3*C"], Float[Array, "B 3*C 4*C"]]:
    """Return the counts and the contacts of B steps from x to y; see the module."""
    events = jnp.concatenate([y * (1 - x), x * (1 - y), y], axis=-1)
    grids = jnp.concatenate([x, y, _near(x), _near(y)], axis=-1)
    return events.sum((1, 2)), jnp.einsum("bhwp,bhwq->bpq", events, grids)


def _cells(spec: EnvSpec, frames: Any) -> Float[Array, "B H W C"]:
    return jnp.asarray(frames, jnp.float32) / float(spec.observation.high.max())


def _near(grid: Float[Array, "B H W C"]) -> Float[Array, "B H W C"]:
    """Return the largest value within one cell of each cell."""
    for axis in (1, 2):
        padding = [(1, 1) if a == axis else (0, 0) for a in range(4)]
        wide = jnp.pad(grid, padding)
        size = grid.shape[axis]
        shifted = [jnp.take(wide, jnp.arange(d, d + size), axis=axis) for d in range(3)]
        grid = jnp.maximum(jnp.maximum(shifted[0], shifted[1]), shifted[2])
    return grid


def _bytes(numbers: Float[Array, "B ..."]) -> UInt8[Array, "B D"]:
    flat = numbers.reshape(numbers.shape[0], -1)
    return jnp.rint(jnp.minimum(flat, BYTE)).astype(jnp.uint8)
