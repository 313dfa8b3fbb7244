"""Pendulum: a rod on a hinge; upright is up."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.canvas import BODY, FAINT, JOINT, LIMB, Canvas, along
from backflip.envs.views.view import mix, shortest_turn, with_last

# As in `backflip.envs.native.pendulum`, which needs JAX; a test holds the two together.
SECONDS = 0.05  # one env step
ORIGIN, SCALE = (160, 120), 88  # the hinge; pixels in a metre


@dataclass(frozen=True)
class PendulumView:
    """Poses are the angle from upright, in radians, to the left where it is positive."""

    interpolates: bool = True
    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return how long an env step lasts."""
        return SECONDS

    def poses(
        self,
        obs: Float[np.ndarray, "n 3"],
        next_obs: Float[np.ndarray, "n 3"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 1"]:
        """Return the angles that the observations are cosine and sine of."""
        del scene
        seen = with_last(obs, next_obs).astype(np.float64)
        return np.arctan2(seen[:, 1], seen[:, 0])[:, None]

    def between(
        self,
        before: Float[np.ndarray, "F 1"],
        after: Float[np.ndarray, "F 1"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F 1"]:
        """Return angles on the short way round: a step turns by 0.4 rad at most."""
        return mix(before, before + shortest_turn(after - before), share)

    def draw(self, poses: Float[np.ndarray, "F 1"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return frames of the rod."""
        return np.stack([_frame(float(angle)) for angle in poses[:, 0]])


def _frame(angle: float) -> UInt8[np.ndarray, "H W 3"]:
    canvas = _surroundings().copy()
    tip = along((0, 0), -angle, 1.0)
    canvas.line([(0, 0), tip], LIMB, 11)
    canvas.disc(tip, 11, BODY)
    canvas.disc((0, 0), 4, JOINT)
    return canvas.finished()


@cache
def _surroundings() -> Canvas:
    """Return the circle that the rod's end moves on, with a mark where it is upright."""
    canvas = Canvas(ORIGIN, SCALE)
    canvas.ring((0, 0), 1.0, FAINT, 2)
    canvas.line([(0, 1.17), (0, 1.25)], FAINT, 3)
    return canvas
