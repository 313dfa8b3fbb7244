"""Filled polygons with smooth edges on a picture, drawn only where they are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

from backflip.envs.views.canvas import FINE, Colour

FAR_AWAY = 1e6  # pixels; Pillow counts in 32 bits


class Polygon(NamedTuple):
    """A filled polygon.

    Attributes:
        points: its corners, in pixels from the left and from the top.
        colour: its colour.
    """

    points: Float[np.ndarray, "n 2"]
    colour: Colour


def paint(frame: UInt8[np.ndarray, "H W 3"], polygons: Sequence[Polygon]) -> None:
    """Draw polygons on a picture, the later ones above the earlier ones.

    The part of the picture around them is enlarged and reduced again, which does not change what is
    between the polygons.
    """
    if not polygons:
        return
    points = np.concatenate([polygon.points for polygon in polygons]).clip(-FAR_AWAY, FAR_AWAY)
    height, width, _ = frame.shape
    left, top = np.floor(points.min(0)).clip(0, [width, height]).astype(int).tolist()
    right, bottom = np.ceil(points.max(0) + 1).clip(0, [width, height]).astype(int).tolist()
    if left >= right or top >= bottom:
        return
    size = ((right - left) * FINE, (bottom - top) * FINE)
    part = Image.fromarray(frame[top:bottom, left:right]).resize(size, Image.Resampling.NEAREST)
    pen, corners, start = ImageDraw.Draw(part), ((points - [left, top]) * FINE).tolist(), 0
    for polygon in polygons:
        end = start + len(polygon.points)
        pen.polygon([(x, y) for x, y in corners[start:end]], polygon.colour)
        start = end
    frame[top:bottom, left:right] = np.asarray(part.reduce(FINE))
