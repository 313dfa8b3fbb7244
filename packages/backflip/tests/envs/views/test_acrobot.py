"""The view of Acrobot draws links at their angles and interpolates with their speeds."""

import numpy as np
import pytest
from packages.backflip.tests.envs.views.pixels_of import at

from backflip.envs.native import acrobot
from backflip.envs.views.acrobot import LINE, SECONDS, AcrobotView
from backflip.envs.views.canvas import BODY, GOAL, LIMB

VIEW = AcrobotView()


def seen(first: float, elbow: float, *speeds: float) -> np.ndarray:
    turns = [np.cos(first), np.sin(first), np.cos(elbow), np.sin(elbow)]
    return np.array([[*turns, *(speeds or (0.0, 0.0))]], np.float32)


def poses(*observations: np.ndarray) -> np.ndarray:
    nothing = np.zeros(0, np.float32)
    return VIEW.poses(np.concatenate(observations[:-1]), observations[-1], nothing)


def test_constants_equal_the_environments() -> None:
    assert SECONDS == acrobot.SECONDS
    # It is over where -cos θ₁ - cos(θ₁ + θ₂) > 1: the tip is that many metres above the hinge.
    assert LINE == 1.0


@pytest.mark.parametrize(
    ("first", "elbow", "middle", "tip"),
    [
        # The hinge is at (160, 120), a link 52 pixels long; points are halfway along each link.
        (0.0, 0.0, (160, 146), (160, 198)),
        (np.pi, 0.0, (160, 94), (160, 42)),
        (np.pi / 2, 0.0, (186, 120), (238, 120)),
        (np.pi / 2, np.pi / 2, (186, 120), (212, 94)),
        (0.0, -np.pi / 2, (160, 146), (134, 172)),
    ],
)
def test_links_are_drawn_at_their_angles(
    first: float, elbow: float, middle: tuple[int, int], tip: tuple[int, int]
) -> None:
    """Gymnasium's angles are counterclockwise from hanging down."""
    (frame,) = VIEW.draw(poses(seen(first, elbow), seen(first, elbow))[:1])
    assert at(frame, middle) == BODY
    assert at(frame, tip) == LIMB
    mirrored = (320 - tip[0], 240 - tip[1])
    assert at(frame, mirrored) != LIMB


def test_target_line_is_drawn() -> None:
    (frame,) = VIEW.draw(poses(seen(0, 0), seen(0, 0))[:1])
    row = {tuple(map(int, pixel)) for pixel in frame[240 // 2 - 52]}
    assert GOAL in row


def test_curves_have_the_poses_and_speeds_of_both_ends() -> None:
    one, other = poses(seen(0.1, 0.2, 1.0, -2.0), seen(0.4, -0.3, 2.0, -3.0))
    shares = np.array([0.0, 1e-4, 1 - 1e-4])
    start, soon, nearly = VIEW.between(np.stack([one] * 3), np.stack([other] * 3), shares)
    np.testing.assert_allclose(start, one)
    seconds = 1e-4 * SECONDS
    np.testing.assert_allclose((soon - start)[:2] / seconds, [1, -2], atol=1e-2)
    np.testing.assert_allclose((other - nearly)[:2] / seconds, [2, -3], atol=1e-2)


@pytest.mark.parametrize(("speed", "turn"), [(0.0, 0.4 - np.pi), (25.0, 0.4 + np.pi)])
def test_fast_elbow_turns_in_the_direction_of_its_speed(speed: float, turn: float) -> None:
    """From 0 to 0.4 - π: backwards at low speed, forwards at 25 rad/s for 0.2 s."""
    one, other = poses(seen(0, 0, 0, speed), seen(0, 0.4 - np.pi, 0, speed))
    middle = VIEW.between(one[None], other[None], np.array([0.5]))[0, 1]
    assert middle == pytest.approx(turn / 2)


def test_slow_joint_takes_the_shortest_turn() -> None:
    one, other = poses(seen(3.0, -3.0), seen(-3.0, 3.0))
    middle = VIEW.between(one[None], other[None], np.array([0.5]))[0, :2]
    np.testing.assert_allclose(np.cos(middle), [-1, -1])
