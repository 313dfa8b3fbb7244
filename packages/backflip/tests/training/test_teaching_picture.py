"""The animated picture of teaching."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from backflip.core.types import Transition
from backflip.envs.views.film import Movie
from backflip.training.teaching.picture import (
    CAPTION_HEIGHT,
    GAP,
    LINE_HEIGHT,
    PANEL_WIDTH,
    animation,
    keep_during,
    kept_during,
)

RED, BLUE = (255, 0, 0), (0, 0, 255)


def movie(colour: tuple[int, int, int], frames: int) -> Movie:
    return Movie(np.full((frames, 24, 48, 3), colour, np.uint8), 30.0, 1.0, True)


def moving(frames: int) -> Movie:
    """A movie in which every frame differs, so that the encoder joins none."""
    shades = np.linspace(0, 255, frames).astype(np.uint8)[:, None, None, None]
    return Movie(np.broadcast_to(shades, (frames, 24, 48, 3)).copy(), 30.0, 1.0, True)


def test_movies_stand_side_by_side_in_their_order() -> None:
    picture = Image.open(io.BytesIO(animation({"before": movie(RED, 9), "after": movie(BLUE, 9)})))
    assert picture.size == (2 * PANEL_WIDTH + GAP, PANEL_WIDTH // 2 + CAPTION_HEIGHT)
    left, right = (picture.convert("RGB").getpixel((x, 10)) for x in (10, PANEL_WIDTH + GAP + 10))
    np.testing.assert_allclose(left, RED, atol=12)
    np.testing.assert_allclose(right, BLUE, atol=12)


def test_half_of_thirty_frames_a_second_are_kept_and_the_longest_movie_counts() -> None:
    picture = Image.open(io.BytesIO(animation({"a": moving(4), "b": moving(10)})))
    assert picture.n_frames == 5


def test_a_moving_picture_may_be_a_gif_with_captions_of_two_lines() -> None:
    picture = Image.open(io.BytesIO(animation({"a\n1": moving(4), "b": moving(10)}, "GIF")))
    assert (picture.format, picture.n_frames) == ("GIF", 5)
    assert picture.size[1] == PANEL_WIDTH // 2 + CAPTION_HEIGHT + LINE_HEIGHT


def record(ended: list[bool]) -> Transition:
    """One environment whose observation counts its env steps."""
    steps = np.arange(len(ended), dtype=np.float32)[:, None]
    over, none = np.array(ended)[:, None], np.zeros((len(ended), 1), bool)
    return Transition(steps[..., None], steps, steps, over, none, steps[..., None] + 1, ~none, ())


def test_the_clip_kept_during_training_starts_with_an_episode(tmp_path: Path) -> None:
    assert kept_during(tmp_path) is None
    keep_during(tmp_path, record([False, False, True, False, False, False]), 2)
    back = kept_during(tmp_path)
    assert back is not None
    np.testing.assert_array_equal(back.obs, [[3.0], [4.0]])
    assert back.alive.all()


def test_a_record_without_room_for_a_clip_keeps_nothing(tmp_path: Path) -> None:
    keep_during(tmp_path, record([False, False]), 5)
    assert kept_during(tmp_path) is None
