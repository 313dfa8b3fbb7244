"""The view of Pendulum draws the rod at its angle and takes the shortest turn."""

import numpy as np
import pytest
from packages.backflip.tests.envs.views.pixels_of import at

from backflip.envs.native import pendulum
from backflip.envs.views.canvas import BACKGROUND, BODY
from backflip.envs.views.film import film
from backflip.envs.views.pendulum import PendulumView

VIEW = PendulumView()
# The hinge is at (160, 120), the rod's end 88 pixels away.
UP, DOWN, LEFT, RIGHT = (160, 32), (160, 208), (72, 120), (248, 120)


def seen(angles: list[float]) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], 1).astype(np.float32)


def test_constants_equal_the_environments() -> None:
    assert VIEW.step_seconds() == pendulum.SECONDS


@pytest.mark.parametrize(
    ("angle", "place"), [(0.0, UP), (np.pi, DOWN), (np.pi / 2, LEFT), (-np.pi / 2, RIGHT)]
)
def test_weight_is_drawn_at_its_angle(angle: float, place: tuple[int, int]) -> None:
    """Gymnasium's angles are counterclockwise from upright."""
    (frame,) = VIEW.draw(VIEW.poses(seen([angle]), seen([angle]), np.zeros(0, np.float32))[:1])
    assert at(frame, place) == BODY
    others = {UP, DOWN, LEFT, RIGHT} - {place}
    for x, y in others:  # a little inside the circle, which is drawn in any case
        assert at(frame, (160 + 0.93 * (x - 160), 120 + 0.93 * (y - 120))) == BACKGROUND


@pytest.mark.medium
def test_movie_takes_the_shortest_turn() -> None:
    """From 3.0 to -3.0: by 2 π - 6 through π, never through 0."""
    before, after = seen([3.0] * 20), seen([-3.0] * 20)
    poses = VIEW.poses(before[:1], after[:1], np.zeros(0, np.float32))
    (middle,) = VIEW.between(poses[:1], poses[1:], np.array([0.5]))
    assert np.cos(middle[0]) == pytest.approx(-1)
    movie = film(VIEW, before[:1], after[:1], np.zeros(0, np.float32), np.ones(1, bool))
    assert len(movie.frames) == 31
    assert at(movie.frames[15], DOWN) == BODY
    top = [at(frame, (160, 44)) == BODY for frame in movie.frames]
    assert not any(top)
