"""The ground scrolls with the camera, and its edges are smooth."""

import numpy as np
import pytest

from backflip.envs.views.backdrop import SOIL, floor, ground, mark_of
from backflip.envs.views.canvas import BACKGROUND, FAINT, GROUND
from backflip.envs.views.planar_camera import Camera

SCALE = 50.0  # a mark every metre
AIM = np.array([0.0, 2.0])  # the ground is 100 pixels below the middle
CAMERA = Camera(SCALE, AIM, np.array([True, False]), 4.0)


def at(frame: np.ndarray, x: int, y: int) -> tuple[int, ...]:
    return tuple(frame[y, x].tolist())


def test_ground_by_hand() -> None:
    """The surface is at row 220, blocks of 50 pixels begin in the middle, lines are 50 apart."""
    frame = ground(CAMERA, AIM, 0.0)
    assert at(frame, 10, 219) == BACKGROUND
    assert at(frame, 10, 220) == at(frame, 10, 221) == GROUND
    assert at(frame, 161, 230) == at(frame, 209, 230) == at(frame, 61, 230) == SOIL
    assert at(frame, 159, 230) == at(frame, 211, 230) == FAINT
    assert at(frame, 5, 170) == at(frame, 5, 120) == FAINT
    assert at(frame, 5, 145) == BACKGROUND


def test_blocks_move_against_the_camera() -> None:
    here, further = ground(CAMERA, AIM, 0.0), ground(CAMERA, AIM + np.array([0.1, 0]), 0.0)
    np.testing.assert_array_equal(further[:, :-5], here[:, 5:])
    np.testing.assert_array_equal(ground(CAMERA, AIM + np.array([200.0, 0]), 0.0), here)


def test_parts_of_a_pixel_are_mixed() -> None:
    """An edge at 160.25 covers three quarters of pixel 160."""
    frame = ground(CAMERA, AIM - np.array([0.005, 0]), 0.0)
    expected = np.array(FAINT) + 0.75 * (np.array(SOIL) - FAINT)
    np.testing.assert_allclose(frame[230, 160], expected, atol=1)


def test_a_camera_above_sees_no_ground() -> None:
    frame = ground(CAMERA, AIM + np.array([0, 5]), 0.0)
    assert {at(frame, 10, y) for y in range(240)} == {BACKGROUND, FAINT}
    assert (ground(CAMERA, AIM - np.array([0, 9]), 0.0)[100:] != BACKGROUND).any(2).all()


def test_floor_moves_in_both_directions() -> None:
    here = floor(CAMERA, AIM)
    moved = floor(CAMERA, AIM + np.array([0.1, 0.2]))
    np.testing.assert_allclose(moved[10:, :-5], here[:-10, 5:], atol=1)
    assert at(here, 30, 30) == BACKGROUND
    assert (here[:, 159:161] != BACKGROUND).any(2).all()


@pytest.mark.parametrize(
    ("scale", "mark"),
    [(50.0, 1), (44.0, 1), (43.0, 2), (100.0, 0.5), (350.0, 0.2), (5.0, 10), (0.1, 500)],
)
def test_marks_are_round_numbers(scale: float, mark: float) -> None:
    assert mark_of(scale) == pytest.approx(mark)
