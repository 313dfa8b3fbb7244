"""View of MinAtar: a board of large cells with one colour per channel.

The colours are evenly spaced along Green's cubehelix, from dark to light with the channel number,
as in MinAtar's own window. They start at a third of the helix, because MinAtar's first colour, that
of the player, is almost black. If a cell has several objects, that of the last channel is shown.

Source: Young & Tian 2019, arXiv:1903.03176; Green 2011, arXiv:1108.5083, eq. 2, with start 0.5,
-1.5 rotations, hue 1 and gamma 1.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.core.spec import EnvSpec
from backflip.envs.views.view import HEIGHT, with_last

SECONDS = 0.05  # duration of a frame in MinAtar's own window
DARKEST, LIGHTEST = 1 / 3, 0.9  # range of the helix that is used
LINE = 32  # grey value of lines between cells
LINED = 4  # lines are drawn if a cell has at least this many pixels
START, ROTATIONS = 0.5, -1.5
DEVIATION = np.array([[-0.14861, 1.78277], [-0.29227, -0.90649], [1.97294, 0.0]])


@dataclass(frozen=True)
class MinAtarView:
    """Poses are the observed planes."""

    pixelated: bool = True

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return SECONDS

    def poses(
        self,
        obs: UInt8[np.ndarray, "n H W C"],
        next_obs: UInt8[np.ndarray, "n H W C"],
        scene: Float[np.ndarray, "..."],
    ) -> UInt8[np.ndarray, "n+1 H W C"]:
        """Return the observations, including the last next one."""
        del scene
        return with_last(obs, next_obs)

    def draw(self, poses: UInt8[np.ndarray, "F H W C"]) -> UInt8[np.ndarray, "F high wide 3"]:
        """Return frames of coloured squares."""
        channels = np.arange(1, poses.shape[-1] + 1, dtype=np.uint8)
        seen = (poses * channels).max(-1)
        size = max(HEIGHT // poses.shape[1], 1)
        frames = colours(poses.shape[-1])[seen].repeat(size, 1).repeat(size, 2)
        if size >= LINED:
            frames[:, ::size], frames[:, :, ::size] = LINE, LINE
        return frames


def is_planes(spec: EnvSpec) -> bool:
    """Return whether observations are images of 0 and 1 only, one channel per kind of object."""
    return spec.is_image and int(spec.observation.high.max()) == 1


@cache
def colours(channels: int) -> UInt8[np.ndarray, "colours 3"]:
    """Return black and the colour of each plane.

    The colour at λ in [0, 1] is λ (1, 1, 1) + λ (1 - λ) / 2 D (cos φ, sin φ), φ = 2π (s/3 + r λ).
    """
    share = np.linspace(DARKEST, LIGHTEST, channels)
    angle = 2 * np.pi * (START / 3 + ROTATIONS * share)
    around = DEVIATION @ np.stack([np.cos(angle), np.sin(angle)])
    helix = share + share * (1 - share) / 2 * around
    bright = np.rint(255 * np.clip(helix, 0, 1)).astype(np.uint8)
    return np.concatenate([np.zeros((1, 3), np.uint8), bright.T])
