"""What is behind a robot: the ground with marks that show its speed, or a floor seen from above.

Edges may lie between pixels, so that slow motion looks smooth: a pixel on an edge gets a mixture of
both colours.
"""

import math

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.canvas import BACKGROUND, FAINT, GROUND, Colour
from backflip.envs.views.planar_camera import SIZE, Camera
from backflip.envs.views.view import HEIGHT, WIDTH

STEPS = (1.0, 2.0, 5.0, 10.0)  # times a power of ten: the distance between two marks, in metres
NARROWEST = 44.0  # least distance between two marks, in pixels
SOIL = (46, 54, 67)
SURFACE, LINE = 2.0, 1.0  # thickness of the ground's surface and of a line, in pixels

EMPTY = np.full((HEIGHT, WIDTH, 3), BACKGROUND, np.uint8)

Point = Float[np.ndarray, "2"]
Frame = UInt8[np.ndarray, "H W 3"]


def ground(camera: Camera, aim: Point, height: float) -> Frame:
    """Return the ground from the side, in blocks of two colours, and lines at equal heights.

    Args:
        camera: the camera.
        aim: the point in the middle of the picture, in metres.
        height: the ground's height in metres.
    """
    frame, mark = EMPTY.copy(), mark_of(camera.scale)
    surface = camera.pixels(aim, np.array([0.0, height]))[1]
    for number in range(1, math.ceil(HEIGHT / (mark * camera.scale)) + 1):
        _paint(frame, surface - number * mark * camera.scale, LINE, FAINT)
    if surface < HEIGHT:
        row = np.full((WIDTH, 3), FAINT, np.uint8)
        for left in _marks(camera, aim, 0, 2 * mark):
            _paint(row, left, mark * camera.scale, SOIL)
        frame[max(math.floor(surface), 0) :] = row
        _paint(frame, surface, SURFACE, GROUND)
    return frame


def floor(camera: Camera, aim: Point) -> Frame:
    """Return the floor from above, with lines at equal distances."""
    frame, mark = EMPTY.copy(), mark_of(camera.scale)
    for axis, picture in ((0, frame.swapaxes(0, 1)), (1, frame)):
        for place in _marks(camera, aim, axis, mark):
            _paint(picture, place - LINE / 2, LINE, FAINT)
    return frame


def mark_of(scale: float) -> float:
    """Return the distance between two marks in metres: a round number."""
    least = NARROWEST / scale
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def _marks(camera: Camera, aim: Point, axis: int, distance: float) -> Float[np.ndarray, " n"]:
    """Return the pixels of the multiples of a distance along an axis that are in the picture."""
    half = SIZE[axis] / 2 / camera.scale
    first, last = (math.floor((aim[axis] + side * half) / distance) for side in (-1, 1))
    points = np.zeros((last - first + 1, 2))
    points[:, axis] = distance * np.arange(first, last + 1)
    return camera.pixels(aim, points)[:, axis]


def _paint(rows: UInt8[np.ndarray, "..."], start: float, thickness: float, colour: Colour) -> None:
    """Paint the rows from `start` on; a row that is partly covered keeps a part of its colour."""
    end = start + thickness
    inner, after = math.ceil(start), math.floor(end)
    rows[max(inner, 0) : max(after, 0)] = colour
    edges = {inner - 1: min(inner, end) - start, after: end - max(after, start)}
    for row, share in edges.items():
        if 0 <= row < len(rows) and share > 0:
            rows[row] = np.rint(rows[row] + share * (np.array(colour) - rows[row]))
