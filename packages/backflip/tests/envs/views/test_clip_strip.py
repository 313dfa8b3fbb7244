"""Tests of `backflip.envs.views.clip_strip`."""

import io
import math

import numpy as np
import pytest
from PIL import Image

from backflip.envs.views.clip_strip import clip_strip_png
from runshelf.errors import UsageError


def opened(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png))


def moving_dot(length: int = 20) -> np.ndarray:
    clip = np.zeros((length, 84, 84), np.uint8)
    for step in range(length):
        clip[step, 40:44, step * 4 : step * 4 + 4] = 255
    return clip


def panel(image: Image.Image, row: int, column: int) -> np.ndarray:
    """The pixels of a panel; 126 wide, 6 apart, 174 from row to row, under a caption of 24."""
    x, y = 6 + column * 132, 6 + row * 174 + 24
    return np.asarray(image.convert("L").crop((x, y, x + 126, y + 126)))


def test_strip_of_pixels_shows_the_track_then_frames_in_order() -> None:
    image = opened(clip_strip_png([np.zeros_like(moving_dot()), moving_dot()], ["before", "after"]))
    assert panel(image, 0, 0).max() < 20
    track, first, last = (panel(image, 1, column) for column in (0, 1, 8))
    # 80 of 84 columns are crossed.
    assert (track.max(0) > 100).mean() == pytest.approx(80 / 84, abs=0.03)
    assert np.argmax(first.max(0)) < 10
    assert np.argmax(last.max(0)) > 110


def test_track_shows_dark_objects_on_light_ground() -> None:
    track = panel(opened(clip_strip_png([255 - moving_dot()], ["c"])), 0, 0)
    assert (track.min(0) < 150).mean() == pytest.approx(80 / 84, abs=0.03)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_strip_takes_channels(channels: int) -> None:
    clip = np.stack([moving_dot()] * channels, axis=-1)
    assert panel(opened(clip_strip_png([clip], ["c"])), 0, 0).max() > 100


def test_strip_has_the_captions_as_description() -> None:
    image = opened(clip_strip_png([moving_dot()] * 2, ["before: −1", "after: +20"]))
    assert image.info["Description"] == "before: −1; after: +20"


def test_strip_of_vectors_draws_each_number_on_one_scale() -> None:
    rising, still = np.linspace(0, 1, 25)[:, None], np.full((25, 1), 0.5)
    image = opened(
        clip_strip_png([np.hstack([rising, still]), np.hstack([still, still])], ["a", "b"])
    )
    up, flat = panel(image, 0, 0) < 150, panel(image, 1, 0) < 150
    heights = [np.argmax(up[:, x]) for x in (12, 63, 114)]
    assert heights[0] > heights[1] > heights[2]
    rows = np.flatnonzero(flat.any(1))
    assert 60 <= rows.min() <= rows.max() <= 66, "a half lies in the middle of 0..1"
    assert image.width >= 2 * 132


def test_strip_survives_values_that_are_not_finite() -> None:
    clip = np.array([[0.0], [math.nan], [1.0], [0.0]])
    drawn = panel(opened(clip_strip_png([clip], ["c"])), 0, 0) < 150
    # A straight line from 0 to 1 over the gap, then down again.
    heights = [np.flatnonzero(drawn[:, x]).mean() for x in (45, 81)]
    assert heights == pytest.approx([63, 10], abs=4)


@pytest.mark.parametrize(
    ("clips", "captions"),
    [
        ([], []),
        ([moving_dot()], []),
        ([moving_dot(), moving_dot(5)], ["a", "b"]),
        ([np.zeros(5)], ["a"]),
        ([np.zeros((5, 8, 8), np.float32)], ["a"]),
    ],
)
def test_strip_refuses_invalid_clips(clips: list[np.ndarray], captions: list[str]) -> None:
    with pytest.raises(UsageError):
        clip_strip_png(clips, captions)
