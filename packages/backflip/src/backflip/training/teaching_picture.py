"""The animated picture of a run of `teach`: clips before, during and after teaching, side by side.

A clip of early training is kept in the run's folder until the end, so that a resumed run
draws the same picture.
"""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.types import Transition
from backflip.envs.views.film import Movie
from backflip.preferences.clips import Clip, episode_start, from_arrays, to_arrays
from runshelf.store.opening import read_whole
from runshelf.store.writing import replace_file

PICTURE = "teaching.webp"
DURING = "clip-during.npz"
PANEL_WIDTH = 240  # pixels
CAPTION_HEIGHT = 26
DURING_SHARE = 8  # the clip "during" is of the phase after one eighth of all phases
MOST_FPS = 15.0  # more frames make the file larger and the movement no clearer
PAUSE = 0.7  # seconds that the last frame stays


def keep_during(folder: Path, record: Transition, length: int) -> None:
    """Keep a clip of `length` steps of a record of the first seed, if one fits."""
    clip = episode_start(record, length)
    if clip is None:
        return
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **to_arrays(clip))
    replace_file(folder, DURING, file.getvalue())


def kept_during(folder: Path) -> Clip | None:
    """Return the clip that was kept during training; None if there is none."""
    data = read_whole(folder, DURING)
    if data is None:
        return None
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return from_arrays(dict(arrays))


def teaching_webp(movies: Mapping[str, Movie]) -> bytes:
    """Return an animated WebP of movies side by side, each above its caption.

    Args:
        movies: by caption; all of one environment, so all have one frame rate.
    """
    first = next(iter(movies.values()))
    stride = max(1, round(first.fps / MOST_FPS))
    count = max(len(movie.frames) for movie in movies.values())
    moments = [*range(0, count, stride)]
    frames = [_side_by_side(movies, moment) for moment in moments]
    durations = [round(1000 * stride / first.fps)] * len(frames)
    durations[-1] += round(1000 * PAUSE)
    file = io.BytesIO()
    frames[0].save(
        file,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        quality=80,
    )
    return file.getvalue()


def _side_by_side(movies: Mapping[str, Movie], moment: int) -> Image.Image:
    panels = [
        (caption, _panel(movie.frames[min(moment, len(movie.frames) - 1)], movie.pixelated))
        for caption, movie in movies.items()
    ]
    height = panels[0][1].height
    picture = Image.new("RGB", (PANEL_WIDTH * len(panels), height + CAPTION_HEIGHT), "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(14)
    for number, (caption, panel) in enumerate(panels):
        picture.paste(panel, (number * PANEL_WIDTH, 0))
        middle = (number * PANEL_WIDTH + PANEL_WIDTH / 2, height + CAPTION_HEIGHT / 2)
        draw.text(middle, caption, "black", font, "mm")
    return picture


def _panel(frame: UInt8[np.ndarray, "H W 3"], pixelated: bool) -> Image.Image:
    image = Image.fromarray(frame)
    size = (PANEL_WIDTH, round(image.height * PANEL_WIDTH / image.width))
    return image.resize(size, Image.Resampling.NEAREST if pixelated else Image.Resampling.LANCZOS)
