"""The view of FrozenLake draws the map and the agent in its cell."""

import numpy as np
import pytest

from backflip.envs.frozen_lake_maps import MAPS
from backflip.envs.views.canvas import GOAL, LIMB
from backflip.envs.views.frozen_lake import BOARD, FrozenLakeView

VIEW = FrozenLakeView()
LEFT, TOP = (320 - BOARD) // 2, (240 - BOARD) // 2


def drawn(pose: np.ndarray) -> np.ndarray:
    return VIEW.draw(pose[None])[0].astype(int)


def centre_of(frame: np.ndarray, colour: tuple[int, int, int], side: int) -> np.ndarray:
    """Return the mean position of the pixels of a colour, in cells as (column, row)."""
    rows, columns = np.nonzero((frame == colour).all(-1))
    return np.array([columns.mean() - LEFT, rows.mean() - TOP]) * side / BOARD


@pytest.mark.parametrize("side", [4, 8])
def test_agent_is_drawn_in_its_cell(side: int) -> None:
    for place in (0, side + 2, side * side - 2):
        frame = drawn(np.eye(side * side)[place])
        expected = np.array([place % side + 0.5, place // side + 0.5])
        np.testing.assert_allclose(centre_of(frame, LIMB, side), expected, atol=0.08)


def test_agent_moves_between_two_cells() -> None:
    one, other = np.eye(16)[[0]], np.eye(16)[[1]]
    (pose,) = VIEW.between(one, other, np.array([0.25]))
    np.testing.assert_allclose(centre_of(drawn(pose), LIMB, 4), [0.75, 0.5], atol=0.08)


@pytest.mark.parametrize("side", [4, 8])
def test_every_letter_of_the_map_is_drawn(side: int) -> None:
    frame = drawn(np.eye(side * side)[0])
    size = BOARD // side
    for row, letters in enumerate(MAPS[f"{side}x{side}"]):
        for column, letter in enumerate(letters):
            y, x = TOP + row * size + size // 2, LEFT + column * size + size // 2
            dark = frame[y, x].sum() < 300
            assert dark == (letter == "H")
            cell = frame[y - size // 2 : y + size // 2, x - size // 2 : x + size // 2]
            assert (cell == GOAL).all(-1).any() == (letter == "G")


def test_poses_include_the_last_next_observation() -> None:
    obs = np.eye(16, dtype=np.float32)
    poses = VIEW.poses(obs[:3], obs[1:4], np.zeros(0, np.float32))
    np.testing.assert_array_equal(poses, obs[:4])
