"""The pictures of a run of `teach`: clips before, during and after teaching, side by side.

A clip of early training is kept in the run's folder until the end, so that a resumed run
draws the same picture.
"""

import io
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.types import Transition
from backflip.envs.views.clip_strip import clip_strip_png
from backflip.envs.views.film import Movie
from backflip.preferences.clips import Clip, episode_start, from_arrays, to_arrays
from backflip.preferences.drawer import Drawer
from runshelf.errors import UserFacingError
from runshelf.store.opening import read_whole
from runshelf.store.writing import replace_file

CLIPS = "clips.png"
PICTURE = "teaching.webp"
DURING = "clip-during.npz"
PANEL_WIDTH, GAP = 240, 6  # pixels of a movie, and between two movies
CAPTION_HEIGHT = 26
LINE_HEIGHT = 18  # of each further line of a caption
FORMATS = {".webp": "WEBP", ".gif": "GIF"}  # of moving pictures: Pillow's name by suffix
DURING_SHARE = 8  # the clip "during" is of the phase after one eighth of all phases
MOST_FPS = 15.0  # more frames make the file larger and the movement no clearer
PAUSE = 0.7  # seconds that the last frame stays


def draw_clips(folder: Path, drawer: Drawer, before: Clip, now: Clip, labels: int) -> None:
    """Draw clips before, during and after teaching: a strip, and a moving picture.

    Args:
        folder: the run's folder, which has the clip of `keep_during`.
        drawer: draws the environment.
        before: a clip of the random policy.
        now: a clip of the trained policy.
        labels: the number of labels of each seed.
    """
    captions = ["before: a random policy", f"after {labels} labels"]
    shown = [np.asarray(clip.obs) for clip in (before, now)]
    replace_file(folder, CLIPS, clip_strip_png(shown, captions))
    clips = {"before": before, "during": kept_during(folder), f"after {labels} labels": now}
    with suppress(UserFacingError):  # some machines cannot draw; the strip is there anyway
        movies = {name: drawer.movie(clip) for name, clip in clips.items() if clip}
        replace_file(folder, PICTURE, animation(movies))


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


def animation(movies: Mapping[str, Movie], form: str = "WEBP") -> bytes:
    """Return one moving picture of movies side by side, each above its caption.

    Args:
        movies: by caption, of one or more lines; all of one environment, so all have one frame
            rate. A movie that is shorter than another one stays at its last frame.
        form: Pillow's name of the format, one of `FORMATS`.
    """
    first = next(iter(movies.values()))
    stride = max(1, round(first.fps / MOST_FPS))
    count = max(len(movie.frames) for movie in movies.values())
    moments = [*range(0, count, stride)]
    frames = [_side_by_side(movies, moment) for moment in moments]
    durations = [round(1000 * stride / first.fps)] * len(frames)
    durations[-1] += round(1000 * PAUSE)
    file = io.BytesIO()
    settings: dict[str, Any] = {"duration": durations, "loop": 0}
    if form == "WEBP":
        settings["quality"] = 80
    frames[0].save(file, form, save_all=True, append_images=frames[1:], **settings)
    return file.getvalue()


def _side_by_side(movies: Mapping[str, Movie], moment: int) -> Image.Image:
    panels = [
        (caption, _panel(movie.frames[min(moment, len(movie.frames) - 1)], movie.pixelated))
        for caption, movie in movies.items()
    ]
    height, lines = panels[0][1].height, max(caption.count("\n") + 1 for caption in movies)
    room = CAPTION_HEIGHT + (lines - 1) * LINE_HEIGHT
    step = PANEL_WIDTH + GAP
    picture = Image.new("RGB", (step * len(panels) - GAP, height + room), "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(14)
    for number, (caption, panel) in enumerate(panels):
        picture.paste(panel, (number * step, 0))
        middle = (number * step + PANEL_WIDTH / 2, height + room / 2)
        draw.text(middle, caption, "black", font, "mm", align="center")
    return picture


def _panel(frame: UInt8[np.ndarray, "H W 3"], pixelated: bool) -> Image.Image:
    image = Image.fromarray(frame)
    size = (PANEL_WIDTH, round(image.height * PANEL_WIDTH / image.width))
    return image.resize(size, Image.Resampling.NEAREST if pixelated else Image.Resampling.LANCZOS)
