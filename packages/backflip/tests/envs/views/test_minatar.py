"""The view of MinAtar draws one colour per plane, the last one on top."""

import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.native.minatar.seaquest import Seaquest
from backflip.envs.views.film import agent_film, film
from backflip.envs.views.minatar import LINE, MinAtarView, colours, is_planes

NO_SCENE = np.zeros(0, np.float32)
VIEW = MinAtarView()


def board(*things: tuple[int, int, int]) -> np.ndarray:
    planes = np.zeros((1, 10, 10, 4), np.uint8)
    for row, column, channel in things:
        planes[0, row, column, channel] = 1
    return planes


def middle(frame: np.ndarray, row: int, column: int) -> list[int]:
    return frame[24 * row + 12, 24 * column + 12].tolist()


def test_planes_have_colours_and_the_last_is_on_top() -> None:
    (frame,) = VIEW.draw(board((0, 0, 0), (3, 7, 2), (9, 9, 1), (9, 9, 3)))
    assert frame.shape == (240, 240, 3)
    assert middle(frame, 0, 0) == colours(4)[1].tolist()
    assert middle(frame, 3, 7) == colours(4)[3].tolist()
    assert middle(frame, 9, 9) == colours(4)[4].tolist()
    assert middle(frame, 5, 5) == [0, 0, 0]
    assert (frame[24] == LINE).all()
    assert (frame[:, 48] == LINE).all()


def test_colours_equal_greens_equation() -> None:
    """Green's equation at λ = 1/2: φ = 2π (1/6 - 3/4) = -7π/6, so cos φ = -√3/2, sin φ = 1/2."""
    cos, sin = -np.sqrt(3) / 2, 0.5
    around = [-0.14861 * cos + 1.78277 * sin, -0.29227 * cos - 0.90649 * sin, 1.97294 * cos]
    shares = np.linspace(1 / 3, 0.9, 18)
    assert shares[5] == 0.5
    np.testing.assert_array_equal(colours(18)[6], np.rint(255 * (0.5 + np.array(around) / 8)))
    bright = colours(10).sum(1)
    assert (np.diff(bright.astype(int)) > 0).all()
    assert len(np.unique(colours(10), axis=0)) == 11


@pytest.mark.medium
def test_both_movies_show_every_board_once() -> None:
    rng = np.random.default_rng(0)
    obs = rng.integers(2, size=(31, 10, 10, 10)).astype(np.uint8)
    lived = np.ones(30, bool)
    movie = film(VIEW, obs[:-1], obs[1:], NO_SCENE, lived)
    per_step = (len(movie.frames) - 1) // 30
    np.testing.assert_array_equal(movie.frames[::per_step], VIEW.draw(obs))
    seen = agent_film(Seaquest().spec, obs[:-1], lived, movie)
    np.testing.assert_array_equal(seen.frames[:-1], movie.frames[:-1])


def test_only_binary_images_are_planes() -> None:
    assert is_planes(Seaquest().spec)
    white = np.full((10, 10, 4), 255, np.uint8)
    one = np.ones(4, np.float32)
    for high in (white, one):
        box = Box(high * 0, high, high.dtype)
        assert not is_planes(EnvSpec("x", box, Discrete(2), None))
