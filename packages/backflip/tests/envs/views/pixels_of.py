"""Read colours from a frame."""

import numpy as np


def at(frame: np.ndarray, place: tuple[float, float]) -> tuple[int, int, int]:
    """Return the colour of the pixel at (x, y), from the left and from the top."""
    red, green, blue = frame[int(place[1]), int(place[0])]
    return int(red), int(green), int(blue)
