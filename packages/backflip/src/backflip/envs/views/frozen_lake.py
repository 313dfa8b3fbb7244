"""View of FrozenLake: ice, holes, the goal's flag, and the agent as a disc."""

from dataclasses import dataclass
from functools import cache
from math import isqrt

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.frozen_lake_maps import MAPS
from backflip.envs.views.canvas import (
    BODY_DARK,
    FAINT,
    GOAL,
    GROUND,
    JOINT,
    LIMB,
    Canvas,
    Colour,
)
from backflip.envs.views.view import HEIGHT, WIDTH, mix, with_last

SECONDS = 0.25  # duration of an env step in Gymnasium's own window
BOARD = 224  # side of the lake, in pixels
ICE: Colour = (196, 218, 228)
GAP = 0.03  # between cells, in cells


@dataclass(frozen=True)
class FrozenLakeView:
    """Poses are one-hot cells, or mixtures of two between env steps."""

    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return SECONDS

    def poses(
        self,
        obs: Float[np.ndarray, "n S"],
        next_obs: Float[np.ndarray, "n S"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 S"]:
        """Return the observations, including the last next one."""
        del scene
        return with_last(obs, next_obs).astype(np.float64)

    def between(
        self,
        before: Float[np.ndarray, "F S"],
        after: Float[np.ndarray, "F S"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F S"]:
        """Return mixtures, which are drawn on the line from cell to cell."""
        return mix(before, after, share)

    def draw(self, poses: Float[np.ndarray, "F S"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
        side = isqrt(poses.shape[1])
        rows, columns = np.indices((side, side)).reshape(2, -1)
        share = poses / np.maximum(poses.sum(1, keepdims=True), 1e-9)
        return np.stack([_frame(side, float(p @ columns), float(p @ rows)) for p in share])


def _frame(side: int, column: float, row: float) -> UInt8[np.ndarray, "H W 3"]:
    canvas = _lake(side).copy()
    size, centre = BOARD / side, (column + 0.5, -row - 0.5)
    canvas.disc(centre, 0.3 * size, LIMB)
    canvas.disc(centre, 0.1 * size, JOINT)
    return canvas.finished()


@cache
def _lake(side: int) -> Canvas:
    """Return the lake with `side` x `side` cells; y is negative, from the top down."""
    size = BOARD / side
    canvas = Canvas(((WIDTH - BOARD) / 2, (HEIGHT - BOARD) / 2), size)
    for row, letters in enumerate(MAPS[f"{side}x{side}"]):
        for column, letter in enumerate(letters):
            centre = (column + 0.5, -row - 0.5)
            _square(canvas, centre, FAINT if letter == "S" else GROUND, 0.5)
            _square(canvas, centre, ICE, 0.4 if letter == "S" else 0.5 - GAP)
            if letter == "H":
                canvas.disc(centre, 0.36 * size, BODY_DARK)
                canvas.disc(centre, 0.3 * size, FAINT)
            if letter == "G":
                _flag(canvas, centre, size)
    return canvas


def _square(canvas: Canvas, centre: tuple[float, float], colour: Colour, half: float) -> None:
    x, y = centre
    corners = [(x - half, y - half), (x + half, y - half), (x + half, y + half)]
    canvas.polygon([*corners, (x - half, y + half)], colour)


def _flag(canvas: Canvas, centre: tuple[float, float], size: float) -> None:
    x, y = centre[0] - 0.15, centre[1]
    canvas.line([(x, y - 0.32), (x, y + 0.32)], GROUND, 0.06 * size)
    canvas.polygon([(x, y + 0.34), (x + 0.42, y + 0.17), (x, y)], GOAL)
