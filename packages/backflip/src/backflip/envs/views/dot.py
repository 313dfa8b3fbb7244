"""View of the moving dot before preprocessing: a white square in a black frame."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.view import mix

# Copied from `backflip.envs.native.dot`, which imports JAX; a test compares them.
FRAME_WIDTH, FRAME_HEIGHT = 160, 210
HALF = 2  # half the square's side, in pixels
RAW_STEPS = 4  # raw steps in one env step; a raw step lasts 1/60 s


@dataclass(frozen=True)
class DotView:
    """Poses are the centres of the square in raw pixels (x, y)."""

    pixelated: bool = True

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return RAW_STEPS / 60

    def poses(
        self,
        obs: UInt8[np.ndarray, "n 84 84 1"],
        next_obs: UInt8[np.ndarray, "n 84 84 1"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "K 2"]:
        """Return the recorded positions, or those estimated from images to about one pixel."""
        del next_obs
        return scene.astype(np.float64) if scene.size else _seen(obs)

    def between(
        self,
        before: Float[np.ndarray, "F 2"],
        after: Float[np.ndarray, "F 2"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F 2"]:
        """Return linear interpolations, which are exact here."""
        return mix(before, after, share)

    def draw(self, poses: Float[np.ndarray, "F 2"]) -> UInt8[np.ndarray, "F 210 160 3"]:
        """Return frames with the square's 4 x 4 pixels in white."""
        frames = np.zeros((len(poses), FRAME_HEIGHT, FRAME_WIDTH, 3), np.uint8)
        for frame, (x, y) in zip(frames, np.rint(poses).astype(int), strict=True):
            frame[y - HALF : y + HALF, x - HALF : x + HALF] = 255
        return frames


def _seen(obs: UInt8[np.ndarray, "n side side 1"]) -> Float[np.ndarray, "n 2"]:
    """Return the centre of brightness, in raw pixels."""
    bright, side = obs[..., 0].astype(np.float64), obs.shape[1]
    places = np.arange(side) + 0.5
    total = np.maximum(bright.sum((1, 2)), 1)
    x, y = (bright.sum(1) @ places) / total, (bright.sum(2) @ places) / total
    return np.stack([x * FRAME_WIDTH / side, y * FRAME_HEIGHT / side], 1)
