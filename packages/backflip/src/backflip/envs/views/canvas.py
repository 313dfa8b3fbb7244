"""A picture in an environment's own units, with smooth edges and the house's colours."""

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from backflip.envs.views.view import HEIGHT, WIDTH

# A dark picture reads on a white page, as a screen does, and on a dark one.
BACKGROUND = (33, 39, 49)
FAINT = (62, 71, 86)
GROUND = (88, 99, 117)
BODY = (92, 177, 199)
BODY_DARK = (57, 122, 148)
LIMB = (240, 198, 116)
JOINT = (228, 231, 237)
GOAL = (134, 194, 122)
LIMIT = (219, 108, 108)

FINE = 4  # drawn so many times as large, then shrunk by averaging

Colour = tuple[int, int, int]
Number = int | float
Point = tuple[Number, Number]


@final
class Canvas:
    """A picture of WIDTH x HEIGHT pixels, drawn in world coordinates with y pointing up.

    Args:
        origin: where the world's origin is, in pixels from the left and from the top.
        scale: pixels for one unit of the world.
        onto: a canvas to go on from; it stays as it is.
    """

    def __init__(self, origin: Point, scale: Number, onto: "Canvas | None" = None) -> None:
        self._origin, self._scale = origin, scale
        size = (WIDTH * FINE, HEIGHT * FINE)
        self._image = onto._image.copy() if onto else Image.new("RGB", size, BACKGROUND)
        self._pen = ImageDraw.Draw(self._image)

    def copy(self) -> "Canvas":
        """Return a canvas that looks like this one."""
        return Canvas(self._origin, self._scale, self)

    def line(self, points: Sequence[Point], colour: Colour, width: Number) -> None:
        """Draw a line `width` pixels wide, with round ends."""
        places = [self._place(point) for point in points]
        self._pen.line(places, colour, max(round(width * FINE), 1), joint="curve")
        for point in (points[0], points[-1]):
            self.disc(point, width / 2, colour)

    def disc(self, centre: Point, radius: Number, colour: Colour) -> None:
        """Draw a disc with a radius in pixels."""
        (x, y), reach = self._place(centre), radius * FINE
        self._pen.ellipse((x - reach, y - reach, x + reach, y + reach), colour)

    def ring(self, centre: Point, radius: Number, colour: Colour, width: Number) -> None:
        """Draw a circle with a radius in world units, `width` pixels wide."""
        (x, y), reach = self._place(centre), radius * self._scale * FINE
        box = (x - reach, y - reach, x + reach, y + reach)
        self._pen.ellipse(box, None, colour, max(round(width * FINE), 1))

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """Fill a polygon."""
        self._pen.polygon([self._place(point) for point in points], colour)

    def finished(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the picture."""
        return np.asarray(self._image.reduce(FINE))

    def _place(self, point: Point) -> Point:
        """Return a point of the world in fine pixels."""
        x, y = self._origin
        return (x + self._scale * point[0]) * FINE, (y - self._scale * point[1]) * FINE


def along(start: Point, angle: Number, length: Number) -> Point:
    """Return the point `length` away from `start`, in a direction counted from up to the right."""
    return start[0] + length * float(np.sin(angle)), start[1] + length * float(np.cos(angle))
