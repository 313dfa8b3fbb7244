"""Films: all frames of a clip in one lossless picture, the strip. Needs no JAX.

A strip has the frames row by row, left to right; a player shows one at a time. The file name is a
hash of the content, so a file can be verified, and equal clips share one file.
"""

import hashlib
import io
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from runshelf.errors import DamagedFile
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole, size_of
from runshelf.store.writing import make_folder, rename_file, replace_file

Which = Literal["person", "agent"]  # the view of a person, and what the agent sees
FILMS = "films"  # folder inside the run's folder

_LARGEST_SIDE = 16_383  # pixels of a WebP picture
_FASTEST = 1e9  # frames per second
_FILE = re.compile(r"[0-9a-f]{64}\.webp")


class Film(NamedTuple):
    """The layout and the speed of a film.

    Attributes:
        file: the strip's file name: the SHA-256 of its content, then `.webp`.
        frames: the number of frames.
        columns: frames in each row of the strip.
        width: pixels of one frame.
        height: pixels of one frame.
        fps: frames per second at speed 1.
        slowdown: how many times slower that is than the environment's time.
        pixelated: enlarge the frames without smoothing.
    """

    file: str
    frames: int
    columns: int
    width: int
    height: int
    fps: float
    slowdown: float
    pixelated: bool


def film_of_json(text: str) -> Film:
    """Return the film that a label file or a status describes.

    Raises:
        ValueError: it is not a film.
    """
    return film_of_fields(parse_record(text))


def film_of_fields(fields: Any) -> Film:
    """Return a film from its fields, which may come from a received run.

    Raises:
        ValueError: they are not those of a film.
    """
    if not isinstance(fields, dict) or fields.keys() != set(Film._fields):
        raise ValueError("not a film")
    film = Film(**cast("dict[str, Any]", fields))
    counts, speeds = film[1:5], (film.fps, film.slowdown)
    if not _FILE.fullmatch(str(fields["file"])):
        raise ValueError("a film without a file")
    if not all(type(count) is int and 0 < count <= _LARGEST_SIDE**2 for count in counts):
        raise ValueError("a film without a size")
    if not all(type(speed) in (int, float) and 0 < speed < _FASTEST for speed in speeds):
        raise ValueError("a film without a speed")
    rows = -(-film.frames // film.columns)
    if max(film.columns * film.width, rows * film.height) > _LARGEST_SIDE:
        raise ValueError("a film larger than a picture")
    return film._replace(pixelated=film.pixelated is True)


def write_film(
    folder: Path,
    frames: UInt8[np.ndarray, "F H W 3"],
    *,
    fps: float,
    slowdown: float = 1.0,
    pixelated: bool = False,
) -> Film:
    """Write a strip of frames into `folder`, which is created if missing; return the film.

    Raises:
        UserFacingError: the disk is full.
    """
    count, height, width, _ = frames.shape
    # About square, so that both sides stay below the limit of WebP.
    columns = max(1, min(_LARGEST_SIDE // width, round((count * height / width) ** 0.5)))
    picture = io.BytesIO()
    # Effort 1 of 6: several times faster than higher ones, and files are nearly as small.
    Image.fromarray(_strip(frames, columns)).save(
        picture, "WEBP", lossless=True, method=1, quality=20, exact=True
    )
    data = picture.getvalue()
    name = f"{hashlib.sha256(data).hexdigest()}.webp"
    make_folder(folder.parent, folder.name)
    if size_of(folder, name) is None:
        replace_file(folder, name, data)
    return Film(
        file=name,
        frames=count,
        columns=columns,
        width=width,
        height=height,
        fps=fps,
        slowdown=slowdown,
        pixelated=pixelated,
    )


def read_film(folder: Path, name: str) -> bytes:
    """Return the content of a strip.

    Raises:
        DamagedFile: the file is missing or damaged. A damaged file is renamed, so that
            `Drawer.redraw_missing` draws it again.
    """
    data = read_whole(folder, name)
    if data is None:
        raise DamagedFile(f"the film `{name}` is missing")
    if f"{hashlib.sha256(data).hexdigest()}.webp" != name:
        rename_file(folder, name, f"{name.removesuffix('.webp')}.damaged")
        raise DamagedFile(f"the film `{name}` is damaged: a running trainer draws it again")
    return data


def has_film(folder: Path, film: Film) -> bool:
    """Return whether the strip exists; its content is not checked."""
    return size_of(folder, film.file) is not None


def _strip(frames: UInt8[np.ndarray, "F H W 3"], columns: int) -> UInt8[np.ndarray, "a b 3"]:
    """Return the strip of some frames; unused places are black."""
    count, height, width, _ = frames.shape
    rows = -(-count // columns)
    filled = np.zeros((rows * columns, height, width, 3), np.uint8)
    filled[:count] = frames
    grid = filled.reshape(rows, columns, height, width, 3).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, 3)
