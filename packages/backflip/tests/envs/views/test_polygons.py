"""Polygons cover the pixels they should, and change nothing else."""

import numpy as np

from backflip.envs.views.polygons import Polygon, paint

WHITE, RED = (255, 255, 255), (255, 0, 0)


def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)


def square(left: float, top: float, side: float) -> np.ndarray:
    return np.array(
        [[left, top], [left + side, top], [left + side, top + side], [left, top + side]]
    )


def test_what_is_beside_them_keeps_its_bits() -> None:
    frame = noise()
    paint(frame, [Polygon(square(10, 5, 8), WHITE), Polygon(square(40, 25, 4), WHITE)])
    assert (frame[6:12, 11:17] == 255).all()
    assert (frame[26:28, 41:43] == 255).all()
    changed = (frame != noise()).any(2)
    assert not changed[:, 20:39].any()
    assert not changed[15:24].any()


def test_later_ones_are_above() -> None:
    frame = noise()
    paint(frame, [Polygon(square(10, 5, 8), WHITE), Polygon(square(12, 7, 2), RED)])
    assert tuple(frame[8, 13]) == RED
    assert tuple(frame[11, 15]) == WHITE


def test_edges_are_smooth() -> None:
    frame = np.zeros((20, 20, 3), np.uint8)
    paint(frame, [Polygon(np.array([[2.0, 2.0], [17.0, 5.0], [9.0, 17.0]]), WHITE)])
    assert len(np.unique(frame)) > 5


def test_points_that_are_far_away_are_no_error() -> None:
    frame = noise()
    paint(frame, [Polygon(square(1e9, 1e9, 3), WHITE), Polygon(square(5, 5, 3), WHITE)])
    assert (frame[6, 6] == 255).all()


def test_outside_the_picture_nothing_happens() -> None:
    frame = noise()
    paint(frame, [Polygon(square(-20, 5, 8), WHITE)])
    paint(frame, [])
    np.testing.assert_array_equal(frame, noise())
