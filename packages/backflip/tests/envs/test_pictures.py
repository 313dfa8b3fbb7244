"""Pictures are small, and exact unless they would be large."""

import numpy as np
import pytest

from backflip.envs.pictures import (
    MOST_BYTES,
    NoPictureError,
    encoded,
    frame_of,
    packed,
    unpacked,
)

RNG = np.random.default_rng(0)
STRIPES = np.zeros((120, 160, 3), np.uint8)
STRIPES[:, ::7], STRIPES[::5] = (255, 0, 90), (1, 2, 3)
NOISE = RNG.integers(0, 256, (240, 320, 3), dtype=np.uint8)


def test_a_drawing_is_kept_exactly() -> None:
    picture = encoded(STRIPES)
    assert len(picture) < MOST_BYTES
    pictures = packed([picture, encoded(STRIPES // 2)])
    assert pictures is not None
    np.testing.assert_array_equal(unpacked(pictures), [STRIPES, STRIPES // 2])


def test_a_photograph_is_kept_in_a_few_bytes() -> None:
    """Smooth light with a little noise takes 100 KB as PNG."""
    y, x = np.mgrid[:480, :640]
    light = np.stack([128 + 80 * np.sin(x / 50), 128 + 80 * np.cos(y / 40), (x + y) / 5], -1)
    photograph = (light + RNG.normal(0, 4, light.shape)).clip(0, 255).astype(np.uint8)
    picture = encoded(photograph)
    assert len(picture) < MOST_BYTES
    pictures = packed([picture])
    assert pictures is not None
    back = unpacked(pictures)[0]
    assert back.shape == (240, 320, 3)
    assert np.abs(back.astype(float) - light[::2, ::2]).mean() < 8


def test_pictures_of_different_sizes_get_the_size_of_the_first() -> None:
    pictures = packed([encoded(STRIPES), encoded(NOISE), encoded(STRIPES)])
    assert pictures is not None
    frames = unpacked(pictures)
    assert frames.shape == (3, 120, 160, 3)
    np.testing.assert_array_equal(frames[2], STRIPES)


def test_without_every_picture_there_is_no_scene() -> None:
    assert packed([encoded(STRIPES), b""]) is None


@pytest.mark.parametrize("size", [(1, 5000), (5000, 1), (1, 1), (241, 321)])
def test_every_shape_fits_a_film(size: tuple[int, int]) -> None:
    pictures = packed([encoded(np.full((*size, 3), 9, np.uint8))])
    assert pictures is not None
    (frame,) = unpacked(pictures)
    assert frame.shape[0] <= 240
    assert frame.shape[1] <= 320
    assert (frame == 9).all()


def test_grey_pictures_get_three_channels() -> None:
    grey = STRIPES[..., 0]
    for drawn in (grey, grey[..., None], [grey * 0, grey]):
        np.testing.assert_array_equal(frame_of(drawn), np.repeat(grey[..., None], 3, -1))


@pytest.mark.parametrize(
    "drawn",
    [
        None,
        "text",
        [],
        np.zeros(3, np.uint8),
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.full((4, 4, 3), 256),
        np.full((4, 4, 3), -1),
        np.full((4, 4, 3), np.nan),
        np.zeros((10_000, 1, 3), np.uint8),
        object(),
    ],
)
def test_what_is_no_picture_is_refused(drawn: object) -> None:
    with pytest.raises(NoPictureError, match=r"returned .*, expected uint8"):
        frame_of(drawn)
