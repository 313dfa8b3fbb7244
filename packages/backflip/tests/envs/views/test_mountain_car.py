"""The view of MountainCar draws the car on the hill, and the flag at the goal."""

import numpy as np
import pytest
from packages.backflip.tests.envs.views.pixels_of import at

from backflip.envs.native import mountain_car, mountain_car_continuous
from backflip.envs.views.canvas import BACKGROUND, BODY, BODY_DARK, FAINT, JOINT, LIMIT
from backflip.envs.views.choose import VIEWS
from backflip.envs.views.mountain_car import MAX_POSITION, MIN_POSITION, MountainCarView, height

VIEW = MountainCarView()


def place(x: float, y: float) -> tuple[float, float]:
    """Position 0 at height 0 is at (213, 232); 168 pixels in one unit."""
    return 213 + 168 * x, 232 - 168 * y


def test_hill_equals_the_environments() -> None:
    assert (mountain_car.MIN_POSITION, mountain_car.MAX_POSITION) == (MIN_POSITION, MAX_POSITION)
    # Gravity along the track is 0.0025 cos 3x: as the hill's slope is, 1.35 cos 3x.
    x = np.linspace(-1.2, 0.6, 19)
    slope = [(height(at + 1e-5) - height(at - 1e-5)) / 2e-5 for at in x]
    np.testing.assert_allclose(slope, 1.35 * np.cos(3 * x), atol=1e-6)


@pytest.mark.parametrize("env_id", ["MountainCar", "MountainCarContinuous"])
def test_flag_is_at_the_goal(env_id: str) -> None:
    goal = {"MountainCar": mountain_car.GOAL, "MountainCarContinuous": mountain_car_continuous.GOAL}
    (frame,) = VIEWS[env_id].draw(np.array([[-0.5]]))
    assert at(frame, place(goal[env_id], height(goal[env_id]) + 0.1)) == JOINT
    other = ({0.45, 0.5} - {goal[env_id]}).pop()
    assert at(frame, place(other, height(other) + 0.1)) == BACKGROUND


@pytest.mark.parametrize("x", [-np.pi / 6, -1.0, 0.0, 0.3])
def test_car_follows_the_slope(x: float) -> None:
    """At -π/6 the hill is flat and 0.1 high; by hand, the car's middle is 0.07 above it."""
    (frame,) = VIEW.draw(np.array([[x]]))
    slope = np.arctan(1.35 * np.cos(3 * x))
    ahead, up = np.array([np.cos(slope), np.sin(slope)]), np.array([-np.sin(slope), np.cos(slope)])
    ground = np.array([x, height(x)])
    assert at(frame, place(*(ground + 0.07 * up))) == BODY
    for wheel in (-0.055, 0.055):
        assert at(frame, place(*(ground + wheel * ahead + 0.027 * up))) == BODY_DARK
    assert at(frame, place(*(ground + 0.16 * up))) == BACKGROUND
    assert at(frame, place(*(ground - 0.05 * up))) == FAINT


def test_wall_is_drawn() -> None:
    (frame,) = VIEW.draw(np.array([[0.0]]))
    assert at(frame, place(-1.22, height(-1.22) + 0.06)) == LIMIT


def test_poses_include_the_last_next_observation() -> None:
    obs = np.array([[-0.5, 0.01], [-0.4, 0.02]], np.float32)
    poses = VIEW.poses(obs, obs + 0.125, np.zeros(0, np.float32))
    np.testing.assert_allclose(poses, [[-0.5], [-0.4], [-0.275]], atol=1e-6)
