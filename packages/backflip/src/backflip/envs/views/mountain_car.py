"""View of both MountainCars: a car between two hills, and a flag at the goal."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.canvas import (
    BODY,
    BODY_DARK,
    FAINT,
    GOAL,
    GROUND,
    JOINT,
    LIMIT,
    Canvas,
    Point,
)
from backflip.envs.views.view import mix, with_last

# Copied from `backflip.envs.native.mountain_car`, which imports JAX; a test compares them.
SECONDS = 1 / 30  # one env step, as Gymnasium shows it
MIN_POSITION, MAX_POSITION = -1.2, 0.6
ORIGIN, SCALE = (213, 232), 168  # position 0 at height 0; pixels per unit
FLAG = 0.2  # height of the flagpole
# The car in its own coordinates (forward, away from the ground).
WHEELS, RADIUS = (-0.055, 0.055), 0.027
UNDERSIDE = [(-0.1, 0.03), (0.1, 0.03), (0.1, 0.07), (0.06, 0.08)]
ROOF = [(0.03, 0.125), (-0.05, 0.125), (-0.075, 0.08), (-0.1, 0.075)]


@dataclass(frozen=True)
class MountainCarView:
    """Poses are the car's position.

    Attributes:
        goal: position of the flag.
    """

    goal: float = 0.5
    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return SECONDS

    def poses(
        self,
        obs: Float[np.ndarray, "n 2"],
        next_obs: Float[np.ndarray, "n 2"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 1"]:
        """Return the observed positions, including the last next one."""
        del scene
        return with_last(obs, next_obs)[:, :1].astype(np.float64)

    def between(
        self,
        before: Float[np.ndarray, "F 1"],
        after: Float[np.ndarray, "F 1"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F 1"]:
        """Return linear interpolations."""
        return mix(before, after, share)

    def draw(self, poses: Float[np.ndarray, "F 1"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
        return np.stack([_frame(self.goal, float(x)) for x in poses[:, 0]])


def height(x: float) -> float:
    """Return the height of the ground, 0.45 sin 3x + 0.55, as Gymnasium draws it."""
    return 0.45 * float(np.sin(3 * x)) + 0.55


def _frame(goal: float, x: float) -> UInt8[np.ndarray, "H W 3"]:
    canvas = _hill(goal).copy()
    slope = float(np.arctan(1.35 * np.cos(3 * x)))
    sin, cos = float(np.sin(slope)), float(np.cos(slope))

    def on_car(forward: float, up: float) -> Point:
        return x + forward * cos - up * sin, height(x) + forward * sin + up * cos

    canvas.polygon([on_car(*corner) for corner in UNDERSIDE + ROOF], BODY)
    for wheel in WHEELS:
        canvas.disc(on_car(wheel, RADIUS), RADIUS * SCALE, JOINT)
        canvas.disc(on_car(wheel, RADIUS), RADIUS * SCALE / 2, BODY_DARK)
    return canvas.finished()


@cache
def _hill(goal: float) -> Canvas:
    """Return the ground, the wall at the left end, and the flag."""
    canvas = Canvas(ORIGIN, SCALE)
    xs = [float(x) for x in np.linspace(-1.3, 0.7, 201)]
    ground = [(x, height(x)) for x in xs]
    canvas.polygon([*ground, (0.7, -0.1), (-1.3, -0.1)], FAINT)
    canvas.line(ground, GROUND, 2)
    wall = MIN_POSITION - 0.02
    canvas.line([(wall, height(wall)), (wall, height(wall) + 0.12)], LIMIT, 3)
    foot, top = height(goal), height(goal) + FLAG
    canvas.line([(goal, foot), (goal, top)], JOINT, 2)
    canvas.polygon([(goal, top), (goal, top - 0.08), (goal + 0.12, top - 0.04)], GOAL)
    return canvas
