"""View of an environment that draws itself: the pictures of its own `render()`, as recorded."""

from collections.abc import Callable
from typing import final

import numpy as np
from jaxtyping import Shaped, UInt8

from backflip.envs.pictures import unpacked
from backflip.envs.views.view import HEIGHT, UNKNOWN_SECONDS, WIDTH, View


@final
class RenderedView:
    """Poses are the recorded pictures. Small ones are enlarged by a whole factor.

    Args:
        fallback: the view for clips without pictures.
        fps: returns the env steps per second in the environment's own time, or None if unknown.
    """

    def __init__(self, fallback: View, fps: Callable[[], float | None]) -> None:
        self.fallback = fallback
        self.pixelated = False
        self._fps = fps

    @property
    def knows_time(self) -> bool:
        """Whether the environment says how long an env step lasts."""
        return self._fps() is not None

    def step_seconds(self) -> float:
        """Return the duration of an env step, from the environment's `render_fps`."""
        fps = self._fps()
        return UNKNOWN_SECONDS if fps is None else 1 / fps

    def draws(self, scene: Shaped[np.ndarray, "..."]) -> bool:
        """Return whether the scene consists of pictures."""
        return scene.ndim == 2 and scene.dtype == np.uint8

    def poses(
        self,
        obs: Shaped[np.ndarray, "n ..."],
        next_obs: Shaped[np.ndarray, "n ..."],
        scene: UInt8[np.ndarray, "K B"],
    ) -> UInt8[np.ndarray, "K H W 3"]:
        """Return the recorded pictures."""
        del obs, next_obs
        return unpacked(scene)

    def draw(self, poses: UInt8[np.ndarray, "F H W 3"]) -> UInt8[np.ndarray, "F high wide 3"]:
        """Return the pictures."""
        factor = max(min(HEIGHT // poses.shape[1], WIDTH // poses.shape[2]), 1)
        return poses.repeat(factor, 1).repeat(factor, 2) if factor > 1 else poses
