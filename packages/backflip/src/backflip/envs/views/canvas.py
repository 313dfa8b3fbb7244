"""An anti-aliased picture drawn in the environment's own units, and the colours of all views."""

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from backflip.envs.views.view import HEIGHT, WIDTH

# A dark background is readable on both a white and a dark page.
BACKGROUND = (33, 39, 49)
FAINT = (62, 71, 86)
GROUND = (88, 99, 117)
BODY = (92, 177, 199)
BODY_DARK = (57, 122, 148)
LIMB = (240, 198, 116)
JOINT = (228, 231, 237)
GOAL = (134, 194, 122)
LIMIT = (219, 108, 108)

FINE = 4  # pictures are drawn this many times larger, then reduced by averaging

Colour = tuple[int, int, int]
Number = int | float
Point = tuple[Number, Number]


@final
class Canvas:
    """A picture of WIDTH x HEIGHT pixels, drawn in world coordinates with y pointing up.

    Args:
        origin: position of the world's origin in pixels from the left and from the top.
        scale: pixels per world unit.
        onto: a canvas to copy as the background.
    """

    def __init__(self, origin: Point, scale: Number, onto: "Canvas | None" = None) -> None:
        self._origin, self._scale = origin, scale
        size = (WIDTH * FINE, HEIGHT * FINE)
        self._image = onto._image.copy() if onto else Image.new("RGB", size, BACKGROUND)
        self._pen = ImageDraw.Draw(self._image)

    def copy(self) -> "Canvas":
        """Return a copy of the canvas."""
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
        """Return a point in pixels of the enlarged picture."""
        x, y = self._origin
        return (x + self._scale * point[0]) * FINE, (y - self._scale * point[1]) * FINE


def along(start: Point, angle: Number, length: Number) -> Point:
    """Return the point `length` away from `start` at `angle`, clockwise from straight up."""
    return start[0] + length * float(np.sin(angle)), start[1] + length * float(np.cos(angle))
