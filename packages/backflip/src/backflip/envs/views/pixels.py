"""View of any image that the agent observes, unchanged."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.view import UNKNOWN_SECONDS, with_last


@dataclass(frozen=True)
class PixelsView:
    """Poses are the observed images."""

    seconds: float = UNKNOWN_SECONDS
    pixelated: bool = True

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return self.seconds

    def poses(
        self,
        obs: UInt8[np.ndarray, "n H W C"],
        next_obs: UInt8[np.ndarray, "n H W C"],
        scene: Float[np.ndarray, "..."],
    ) -> UInt8[np.ndarray, "n+1 H W C"]:
        """Return the observations, including the last next one."""
        del scene
        return with_last(obs, next_obs)

    def draw(self, poses: UInt8[np.ndarray, "F H W C"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return colour images unchanged, and the last channel of others as grey."""
        return poses if poses.shape[-1] == 3 else np.repeat(poses[..., -1:], 3, axis=-1)
