"""Pictures of observations, clip files and tracks."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.inspect.clip_files import write_clip
from backflip.inspect.pictures import agent_frame, enlarged, side_by_side
from backflip.inspect.track_plots import HEIGHT, Curve, with_panels
from runshelf.errors import UsageError


def spec(channels: int, high: int = 255) -> EnvSpec:
    low = np.zeros((3, 4, channels), np.uint8)
    return EnvSpec("x", Box(low, low + high, low.dtype), Discrete(2), 10)


def test_colour_images_stay_and_binary_channels_become_white() -> None:
    colours = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    np.testing.assert_array_equal(agent_frame(spec(3), colours, colours), colours)
    planes = np.zeros((3, 4, 2), np.uint8)
    planes[1, 2, 1] = 1
    shown = agent_frame(spec(2, high=1), planes, planes)
    assert shown.shape == (3, 9, 3)
    assert np.argwhere(shown[..., 0] == 255).tolist() == [[1, 7]]


def test_enlarging_repeats_pixels() -> None:
    frame = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    np.testing.assert_array_equal(enlarged(frame, 4), frame.repeat(2, 0).repeat(2, 1))
    assert side_by_side(frame, frame).shape == (2, 2 + 8 + 2, 3)


def test_clip_is_animated_and_strip_is_not(tmp_path: Path) -> None:
    frames = [np.full((20, 30, 3), shade, np.uint8) for shade in (0, 80, 160, 240)]
    write_clip(tmp_path / "a" / "clip.webp", frames, 10.0)
    with Image.open(tmp_path / "a" / "clip.webp") as moving:
        assert (moving.size, getattr(moving, "n_frames", 1)) == ((30, 20), 4)
    write_clip(tmp_path / "clip.png", frames, 10.0)
    with Image.open(tmp_path / "clip.png") as strip:
        assert strip.size == (4 * 30 + 3 * 8, 20)
    with pytest.raises(UsageError, match=r"must end in \.webp"):
        write_clip(tmp_path / "clip.gif", frames, 10.0)


def test_tracks_are_below_on_the_same_time_axis() -> None:
    frames = [np.zeros((240, 320, 3), np.uint8)] * 9  # four env steps of two frames
    values = np.array([0.0, 1.0, 2.0, 3.0, 99.0])  # the last one is beyond the clip
    shown = with_panels(frames, 2, [[Curve("value", values)], [Curve("reward", values)]])
    assert len(shown) == 9
    assert shown[0].shape == (240 + 2 * HEIGHT, 320, 3)
    bright = np.array([228, 231, 237])
    for number, frame in enumerate(shown):
        line = (frame[250:] == bright).all(-1).all(0)  # a whole column
        assert np.flatnonzero(line).tolist() == [round(319 * number / 8)]
