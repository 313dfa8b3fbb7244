"""Any image that the agent sees, as it is."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.view import UNKNOWN_SECONDS, with_last


@dataclass(frozen=True)
class PixelsView:
    """Poses are the images themselves."""

    seconds: float = UNKNOWN_SECONDS
    interpolates: bool = False
    pixelated: bool = True

    def step_seconds(self) -> float:
        """Return how long an env step lasts."""
        return self.seconds

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
        """Return the images before: a mixture of two was never seen."""
        del after, share
        return before

    def draw(self, poses: UInt8[np.ndarray, "F H W C"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return colours as they are, and anything else as grey: the last channel."""
        return poses if poses.shape[-1] == 3 else np.repeat(poses[..., -1:], 3, axis=-1)
