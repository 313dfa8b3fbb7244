"""View of Pendulum: a rod on a hinge."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.canvas import BODY, FAINT, JOINT, LIMB, Canvas, along
from backflip.envs.views.view import mix, shortest_turn, with_last

# Copied from `backflip.envs.native.pendulum`, which imports JAX; a test compares them.
SECONDS = 0.05  # one env step
ORIGIN, SCALE = (160, 120), 88  # position of the hinge; pixels per metre


@dataclass(frozen=True)
class PendulumView:
    """Poses are the angle from upright in radians, positive to the left."""

    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return SECONDS

    def poses(
        self,
        obs: Float[np.ndarray, "n 3"],
        next_obs: Float[np.ndarray, "n 3"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 1"]:
        """Return the angles, computed from their cosines and sines."""
        del scene
        seen = with_last(obs, next_obs).astype(np.float64)
        return np.arctan2(seen[:, 1], seen[:, 0])[:, None]

    def between(
        self,
        before: Float[np.ndarray, "F 1"],
        after: Float[np.ndarray, "F 1"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F 1"]:
        """Return angles on the shortest turn: an env step turns by at most 0.4 rad."""
        return mix(before, before + shortest_turn(after - before), share)

    def draw(self, poses: Float[np.ndarray, "F 1"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
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
    """Return the circle of the rod's end, with a mark at the upright position."""
    canvas = Canvas(ORIGIN, SCALE)
    canvas.ring((0, 0), 1.0, FAINT, 2)
    canvas.line([(0, 1.17), (0, 1.25)], FAINT, 3)
    return canvas
