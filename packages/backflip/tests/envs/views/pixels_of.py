"""Reading colours off a frame."""

import numpy as np


def at(frame: np.ndarray, place: tuple[float, float]) -> tuple[int, int, int]:
    """The colour of the pixel that a point (x, y), from the left and from the top, is in."""
    red, green, blue = frame[int(place[1]), int(place[0])]
    return int(red), int(green), int(blue)
