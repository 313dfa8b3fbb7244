"""The view of CartPole draws cart, pole and limits at their positions."""

import numpy as np
import pytest
from packages.backflip.tests.envs.views.pixels_of import at

from backflip.envs.native import cartpole
from backflip.envs.views.canvas import BACKGROUND, BODY, LIMB, LIMIT
from backflip.envs.views.cartpole import MAX_POSITION, POLE, CartPoleView

VIEW = CartPoleView()


def test_constants_equal_the_environments() -> None:
    assert MAX_POSITION == cartpole.MAX_POSITION
    assert POLE == 2 * cartpole.HALF_LENGTH
    assert VIEW.step_seconds() == cartpole.SECONDS


@pytest.mark.parametrize(
    ("x", "angle", "tip"),
    [
        # Hinge at (160, 150), 58 pixels in a metre: the pole's end is 58 pixels above it ...
        (0.0, 0.0, (160, 92)),
        (1.0, 0.0, (218, 92)),
        # ... or, at 0.2 rad, 58 sin 0.2 = 11.5 to the right of it and 58 cos 0.2 = 56.8 above.
        (0.0, 0.2, (171.5, 93.2)),
        (-1.9, -0.2, (38.3, 93.2)),
    ],
)
def test_pole_is_drawn_at_its_angle(x: float, angle: float, tip: tuple[float, float]) -> None:
    (frame,) = VIEW.draw(np.array([[x, angle]]))
    assert frame.shape == (240, 320, 3)
    assert at(frame, tip) == LIMB
    beyond = (tip[0], tip[1] - 6)
    assert at(frame, beyond) == BACKGROUND
    mirrored = (320 + 2 * 58 * x - tip[0], tip[1])
    assert (at(frame, mirrored) == LIMB) == (angle == 0)
    # The cart's left half is beside the hinge, 58 * 0.36 = 20.9 pixels wide.
    assert at(frame, (160 + 58 * x - 18, 155)) == BODY
    assert at(frame, (160 + 58 * x - 24, 155)) == BACKGROUND


def test_limits_are_drawn() -> None:
    (frame,) = VIEW.draw(np.zeros((1, 2)))
    for x in (160 - 2.4 * 58, 160 + 2.4 * 58):
        assert at(frame, (x, 154)) == LIMIT


def test_poses_include_the_last_next_observation() -> None:
    obs = np.arange(8, dtype=np.float32).reshape(2, 4)
    poses = VIEW.poses(obs, obs + 10, np.zeros(0, np.float32))
    np.testing.assert_array_equal(poses, [[0, 2], [4, 6], [14, 16]])
