"""The place map: what is where in an image, and where it has just changed.

A teacher may want something to be at a place, such as a car beside one's own, and not only to
happen there. With f_{t+1} the newest frame after a step (each channel on its own) and h the largest
value of a pixel, the brightness of each cell is

    p = pool(blur(f_{t+1} / h))

with the cells and windows of the change map (`change_map`). The features, in four groups, are those
of the change map and, before the action,

    place      p_i / (s_i + 0.02 max s)  with s_i the standard deviation of p_i over observed steps

So a reward may fall with movement at a place and rise with what is there.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt8

from backflip.core.spec import EnvSpec
from backflip.rewards.representations.change_map import (
    ChangeMap,
    ChangeScale,
    divisors,
    map_size,
    merges,
    pooled,
)
from backflip.rewards.representations.interface import Inputs, Seen


@dataclass(frozen=True)
class PlaceMap(ChangeMap):
    """The representation of one environment: the change map with another group; see the module.

    Raises:
        UsageError: its observations are not images.
    """

    name: ClassVar[str] = "place_map"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the four groups."""
        constant, change, action = super().sizes
        return (constant, change, change, action)

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return the two maps of the steps, as `after`."""
        before, change = super().see(obs, next_obs)
        return Seen(before, jnp.concatenate([change, place_maps(self.spec, next_obs)], axis=1))

    def initial(self) -> Inputs:
        """Return divisors of one."""
        return Inputs(ChangeScale(jnp.ones(2 * map_size(self.spec))))

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the divisors for both maps (n, 2 D), each map with a floor of its own."""
        del before
        found = [divisors(one, 1.0) for one in np.split(after, 2, axis=1)]
        return Inputs(ChangeScale(jnp.asarray(np.concatenate(found), jnp.float32)))


def place_maps(spec: EnvSpec, frames: Any) -> UInt8[Any, "B D"]:
    """Return the brightness of each cell of B frames in bytes; of many channels their mean."""
    bright = jnp.asarray(frames).astype(jnp.float32) / float(spec.observation.high.max())
    return pooled(bright.mean(-1, keepdims=True) if merges(spec) else bright)
