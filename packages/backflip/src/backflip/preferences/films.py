"""Films: what a clip looks like, as one lossless picture that holds all its frames.

A strip lays the frames out row by row, left to right; a player copies one of them at a time. The
file is named by its content, so that it can be checked and two clips alike share it. No JAX here.
"""

import hashlib
import io
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from runshelf.errors import DamagedFile
from runshelf.store.files import disk_errors, write_whole

Which = Literal["person", "agent"]  # what a person should see; what the agent sees
FILMS = "films"  # the folder, inside the run's

_LARGEST_SIDE = 16_383  # of a WebP picture, in pixels


class Film(NamedTuple):
    """Where a film's frames are, and how fast they follow each other.

    Attributes:
        file: the strip's name, the SHA-256 of its content with `.webp` behind.
        frames: how many.
        columns: how many stand side by side.
        width: of one frame, in pixels.
        height: of one frame, in pixels.
        fps: frames a second, at speed 1.
        slowdown: how much slower than the environment's own time that is.
        pixelated: it is to be enlarged without smoothing.
    """

    file: str
    frames: int
    columns: int
    width: int
    height: int
    fps: float
    slowdown: float
    pixelated: bool


def write_film(
    folder: Path,
    frames: UInt8[np.ndarray, "F H W 3"],
    *,
    fps: float,
    slowdown: float = 1.0,
    pixelated: bool = False,
) -> Film:
    """Write a strip of frames into `folder`, made if need be; return where they are in it.

    Raises:
        UserFacingError: the disk is full.
    """
    count, height, width, _ = frames.shape
    # About square, so that neither side comes near the largest a picture may have.
    columns = max(1, min(_LARGEST_SIDE // width, round((count * height / width) ** 0.5)))
    picture = io.BytesIO()
    # Effort 1 of 6: nearly as small as with more, several times faster.
    Image.fromarray(_strip(frames, columns)).save(
        picture, "WEBP", lossless=True, method=1, quality=20, exact=True
    )
    data = picture.getvalue()
    name = f"{hashlib.sha256(data).hexdigest()}.webp"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder / name).exists():
        write_whole(folder / name, data)
    return Film(name, count, columns, width, height, fps, slowdown, pixelated)


def read_film(folder: Path, name: str) -> bytes:
    """Return a strip as it was written.

    Raises:
        DamagedFile: it is missing, or is not what it was. Then it is moved aside, so that whoever
            draws films finds it missing and draws it again.
    """
    path = folder / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedFile(f"the film `{name}` is missing ({error.strerror})") from error
    if f"{hashlib.sha256(data).hexdigest()}.webp" != name:
        path.replace(path.with_suffix(".damaged"))
        raise DamagedFile(f"the film `{name}` is damaged: it is drawn anew while the run goes on")
    return data


def has_film(folder: Path, film: Film) -> bool:
    """Return whether the strip is there, without looking into it."""
    return (folder / film.file).is_file()


def _strip(frames: UInt8[np.ndarray, "F H W 3"], columns: int) -> UInt8[np.ndarray, "a b 3"]:
    """Return frames side by side, row after row, black where there are none."""
    count, height, width, _ = frames.shape
    rows = -(-count // columns)
    filled = np.zeros((rows * columns, height, width, 3), np.uint8)
    filled[:count] = frames
    grid = filled.reshape(rows, columns, height, width, 3).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, 3)
