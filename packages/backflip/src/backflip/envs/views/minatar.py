"""A game of MinAtar: a board of large cells, dark where nothing is, one colour for each plane.

The colours are spaced evenly along Green's cubehelix, from dark to light as the channel's number
rises, as in MinAtar's own window; but they begin at a third of it, for the first colour there, that
of the player, is as good as black. Of several things in one cell that of the last channel is seen.

Source: Young & Tian 2019, arXiv:1903.03176; Green 2011, arXiv:1108.5083, eq. 2, with start 0.5,
-1.5 rotations, hue 1 and gamma 1.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.core.spec import EnvSpec
from backflip.envs.views.view import HEIGHT, with_last

SECONDS = 0.05  # that MinAtar's window shows a frame
DARKEST, LIGHTEST = 1 / 3, 0.9  # shares of the helix
LINE = 32  # grey between cells
LINED = 4  # pixels of a cell, from which there are lines
START, ROTATIONS = 0.5, -1.5
DEVIATION = np.array([[-0.14861, 1.78277], [-0.29227, -0.90649], [1.97294, 0.0]])


@dataclass(frozen=True)
class MinAtarView:
    """Poses are the planes themselves."""

    interpolates: bool = False
    pixelated: bool = True

    def step_seconds(self) -> float:
        """Return how long an env step lasts."""
        return SECONDS

    def poses(
        self,
        obs: UInt8[np.ndarray, "n H W C"],
        next_obs: UInt8[np.ndarray, "n H W C"],
        scene: Float[np.ndarray, "..."],
    ) -> UInt8[np.ndarray, "n+1 H W C"]:
        """Return what was seen, that after the last env step included."""
        del scene
        return with_last(obs, next_obs)

    def between(
        self,
        before: UInt8[np.ndarray, "F H W C"],
        after: UInt8[np.ndarray, "F H W C"],
        share: Float[np.ndarray, " F"],
    ) -> UInt8[np.ndarray, "F H W C"]:
        """Return the planes before: nothing is ever between two cells."""
        del after, share
        return before

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
    """Return whether observations are planes of 0 and 1, which no screen could show as they are."""
    return spec.is_pixels and int(spec.observation.high.max()) == 1


@cache
def colours(channels: int) -> UInt8[np.ndarray, "colours 3"]:
    """Return black and the colour of each plane.

    At the share λ the colour is λ (1, 1, 1) + λ (1 - λ) / 2 D (cos φ, sin φ), φ = 2π (s/3 + r λ).
    """
    share = np.linspace(DARKEST, LIGHTEST, channels)
    angle = 2 * np.pi * (START / 3 + ROTATIONS * share)
    around = DEVIATION @ np.stack([np.cos(angle), np.sin(angle)])
    helix = share + share * (1 - share) / 2 * around
    bright = np.rint(255 * np.clip(helix, 0, 1)).astype(np.uint8)
    return np.concatenate([np.zeros((1, 3), np.uint8), bright.T])
