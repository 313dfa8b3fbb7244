"""The view of dot draws the square at its exact position."""

from typing import Any

import jax
import numpy as np
import pytest

from backflip.envs.native import dot
from backflip.envs.views.dot import FRAME_HEIGHT, FRAME_WIDTH, HALF, RAW_STEPS, DotView
from backflip.envs.views.film import film

VIEW = DotView()


def white(frame: np.ndarray) -> set[tuple[int, int]]:
    """Return the white pixels (x, y); all others must be black."""
    assert set(np.unique(frame)) <= {0, 255}
    return {(int(x), int(y)) for y, x in np.argwhere(frame.all(2))}


def test_frame_size_equals_the_environments() -> None:
    assert tuple(dot.FRAME) == (FRAME_WIDTH, FRAME_HEIGHT)
    assert (HALF, RAW_STEPS) == (dot.HALF, dot.SKIP)


@pytest.mark.parametrize("position", [(80, 105), (2, 2), (157, 207), (2, 207)])
def test_exactly_the_square_is_white(position: tuple[int, int]) -> None:
    x, y = position
    (frame,) = VIEW.draw(np.array([position], float))
    assert frame.shape == (210, 160, 3)
    square = {(i, j) for i in (x - 2, x - 1, x, x + 1) for j in (y - 2, y - 1, y, y + 1)}
    assert white(frame) == square


def test_movie_interpolates_between_scenes() -> None:
    scene = np.array([[40, 50], [44, 50], [44, 46]], np.float32)
    obs = np.zeros((3, 84, 84, 1), np.uint8)
    movie = film(VIEW, obs, obs, scene, np.ones(3, bool))
    corners = [min(white(frame)) for frame in movie.frames]
    # What followed the last step is not recorded: there the square rests.
    expected = [(38, 48), (40, 48), (42, 48), (42, 46), (42, 44), (42, 44)]
    # Three steps of 1/15 s are shown in a second: 5 times slower, ten frames in each.
    assert movie.slowdown == pytest.approx(5)
    assert [corners[j] for j in (0, 5, 10, 15, 20, 30)] == expected


@pytest.mark.medium
def test_clips_without_scenes_use_the_observed_square() -> None:
    env = dot.Dot()

    @jax.jit
    @jax.vmap
    def look(key: Any) -> Any:
        state = env.reset(key)
        return env.observe(state), env.scene(state)

    seen, scene = map(np.asarray, look(jax.random.split(jax.random.key(0), 50)))
    found = VIEW.poses(seen[..., -1:], seen[..., -1:], np.zeros(0, np.float32))
    np.testing.assert_allclose(found, scene, atol=0.6)
