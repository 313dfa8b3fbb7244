"""Frames of films as text.

A character cell is about twice as high as wide, so the upper half block in one colour on another
background shows two square pixels.
"""

import io
import itertools

import numpy as np
from jaxtyping import Int, UInt8
from PIL import Image

from backflip.labelling.terminal.layout import Size
from backflip.labelling.terminal.text import RESET
from backflip.preferences.films import Film
from runshelf.errors import DamagedFile

_UPPER_HALF = "▀"
_CUBE = np.array([0, 95, 135, 175, 215, 255])  # levels of xterm's 6 × 6 × 6 cube


def scaled_frames(strip: bytes, film: Film, size: Size) -> UInt8[np.ndarray, "F H W 3"]:
    """Return a film's frames scaled to `size` by area averaging."""
    try:
        picture = Image.open(io.BytesIO(strip), formats=["WEBP"]).convert("RGB")
    except Exception as error:
        raise DamagedFile(f"the film `{film.file}` is not a picture") from error
    rows = -(-film.frames // film.columns)
    if (film.columns * film.width, rows * film.height) != picture.size:
        raise DamagedFile(f"the film `{film.file}` has another size")
    frames = np.empty((film.frames, size.height, size.width, 3), np.uint8)
    for number in range(film.frames):
        row, column = divmod(number, film.columns)
        left, top = column * film.width, row * film.height
        box = (left, top, left + film.width, top + film.height)
        frames[number] = np.asarray(picture.resize(size, Image.Resampling.BOX, box))
    return frames


def half_blocks(frame: UInt8[np.ndarray, "H W 3"], *, true_colour: bool) -> list[str]:
    """Return a frame as lines of text with two rows of pixels each."""
    colours = _packed(frame) if true_colour else nearest_of_256(frame)
    tops, bottoms = colours[::2], colours[1::2]
    if len(bottoms) < len(tops):  # odd number of rows
        bottoms = np.concatenate([bottoms, np.full_like(tops[:1], -1)])
    return [_line(top, bottom, true_colour) for top, bottom in zip(tops, bottoms, strict=True)]


def nearest_of_256(frame: UInt8[np.ndarray, "H W 3"]) -> Int[np.ndarray, "H W"]:
    """Return the nearest of xterm's 256 colours (cube or greys) for each pixel."""
    wide = frame.astype(int)
    level = np.abs(wide[..., None] - _CUBE).argmin(-1)
    grey = np.clip((wide.mean(-1) - 8 + 5) // 10, 0, 23).astype(int)
    off_cube = ((_CUBE[level] - wide) ** 2).sum(-1)
    off_grey = ((8 + 10 * grey[..., None] - wide) ** 2).sum(-1)
    return np.where(off_grey < off_cube, 232 + grey, 16 + level @ np.array([36, 6, 1]))


def _packed(frame: UInt8[np.ndarray, "H W 3"]) -> Int[np.ndarray, "H W"]:
    return frame.astype(int) @ np.array([65536, 256, 1])


def _line(top: Int[np.ndarray, " W"], bottom: Int[np.ndarray, " W"], true_colour: bool) -> str:
    """Return a line of cells; neighbours with equal colours share one escape sequence."""
    changes = np.flatnonzero((np.diff(top) != 0) | (np.diff(bottom) != 0)) + 1
    starts = [0, *changes.tolist(), len(top)]
    runs = [
        f"\x1b[{_colour(38, int(top[a]), true_colour)};{_colour(48, int(bottom[a]), true_colour)}m"
        f"{_UPPER_HALF * (b - a)}"
        for a, b in itertools.pairwise(starts)
    ]
    return "".join(runs) + RESET


def _colour(plane: int, colour: int, true_colour: bool) -> str:
    if colour < 0:
        return str(plane + 1)  # the terminal's default
    if not true_colour:
        return f"{plane};5;{colour}"
    return f"{plane};2;{colour >> 16};{colour >> 8 & 255};{colour & 255}"
