"""View of Acrobot: two links hanging from a hinge, and the target height of the tip."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.canvas import BODY, FAINT, GOAL, JOINT, LIMB, Canvas, along
from backflip.envs.views.view import shortest_turn, with_last

# Copied from `backflip.envs.native.acrobot`, which imports JAX; a test compares them.
SECONDS = 0.2  # one env step
LINE = 1.0  # m above the hinge
ORIGIN, SCALE = (160, 120), 52  # position of the hinge; pixels per metre
DASH = 0.09  # m


@dataclass(frozen=True)
class AcrobotView:
    """Poses are the angles of shoulder and elbow and their angular velocities (rad, rad/s)."""

    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return SECONDS

    def poses(
        self,
        obs: Float[np.ndarray, "n 6"],
        next_obs: Float[np.ndarray, "n 6"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 4"]:
        """Return the angles, computed from their cosines and sines, and the velocities."""
        del scene
        seen = with_last(obs, next_obs).astype(np.float64)
        angles = np.arctan2(seen[:, [1, 3]], seen[:, [0, 2]])
        return np.concatenate([angles, seen[:, 4:]], 1)

    def between(
        self,
        before: Float[np.ndarray, "F 4"],
        after: Float[np.ndarray, "F 4"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F 4"]:
        """Return poses on cubic curves with the angles and velocities of both ends.

        The elbow may turn by 1.8 π in one env step, so the shortest turn may be wrong. The turn is
        the one nearest to that of the mean velocity.
        """
        start, speed, end_speed = before[:, :2], before[:, 2:] * SECONDS, after[:, 2:] * SECONDS
        expected = (speed + end_speed) / 2
        turn = expected + shortest_turn(after[:, :2] - start - expected)
        s = share[:, None]
        angles = start + (3 - 2 * s) * s**2 * turn
        angles += s * (1 - s) * ((1 - s) * speed - s * end_speed)
        return np.concatenate([angles, before[:, 2:] * (1 - s) + after[:, 2:] * s], 1)

    def draw(self, poses: Float[np.ndarray, "F 4"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
        return np.stack([_frame(float(first), float(elbow)) for first, elbow, *_ in poses])


def _frame(first: float, elbow: float) -> UInt8[np.ndarray, "H W 3"]:
    canvas = _surroundings().copy()
    # Angles are counterclockwise from hanging down; `along` counts clockwise from up.
    middle = along((0, 0), np.pi - first, 1.0)
    tip = along(middle, np.pi - first - elbow, 1.0)
    canvas.line([(0, 0), middle], BODY, 10)
    canvas.line([middle, tip], LIMB, 10)
    for joint in ((0.0, 0.0), middle):
        canvas.disc(joint, 4, JOINT)
    return canvas.finished()


@cache
def _surroundings() -> Canvas:
    """Return the target height, and the circle that the tip can reach."""
    canvas = Canvas(ORIGIN, SCALE)
    canvas.ring((0, 0), 2.0, FAINT, 1.5)
    for start in np.arange(-2.97, 2.97, 2 * DASH):
        canvas.line([(float(start), LINE), (float(start) + DASH, LINE)], GOAL, 2)
    return canvas
