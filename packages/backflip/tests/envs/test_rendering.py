"""Environments are drawn by their own `render()`, and step alike whether they are drawn or not."""

import random
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.envs.drawn_envs import BACK, SQUARE

from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.pictures import packed, unpacked
from backflip.envs.registry import make_host

OWN = "packages.backflip.tests.envs.drawn_envs:"
ROWS = 3


def batch(name: str, autoreset: str = "next_step") -> GymnasiumEnv:
    env = make_host(f"{OWN}{name}", {}, ROWS, autoreset)
    assert isinstance(env, GymnasiumEnv)
    return env


def shown(env: GymnasiumEnv, row: int) -> np.ndarray:
    """The picture of the current state of one row."""
    scenes = env.scenes([row])
    assert scenes is not None
    pictures = packed([scenes[row]])
    assert pictures is not None
    return unpacked(pictures)[0]


def drawn_place(frame: np.ndarray) -> int:
    """The place of the square in a picture, which shows nothing else."""
    colours = {tuple(pixel) for pixel in frame.reshape(-1, 3).tolist()}
    assert colours == {BACK, SQUARE}
    columns = np.flatnonzero((frame[0] == SQUARE).all(-1))
    return round(columns[0] * 8 / frame.shape[1])


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    ["Square", "WithoutArgument", "OldStyle", "Undeclared", "Frames", "Opaque", "DrawsNumbers"],
)
def test_pictures_show_the_states_of_the_observations(name: str) -> None:
    env = batch(name)
    env.draw_rows([0, 2])
    obs, ended = env.reset([1, 2, 3]), 0
    rng = np.random.default_rng(0)
    for _ in range(30):
        for row in (0, 2):
            assert drawn_place(shown(env, row)) == obs[row, 0]
        step = env.step(rng.integers(2, size=ROWS))
        obs, ended = step.obs, ended + step.terminated.sum() + step.truncated.sum()
    assert ended > 2
    assert env.own_render is not None
    assert not env.own_render.problem


def test_only_the_rows_asked_for_are_made_to_draw() -> None:
    env = batch("Square")
    env.draw_rows([1])
    env.reset([0, 1, 2])
    modes = [row.unwrapped.render_mode for row in env._vector.envs]
    assert modes == [None, "rgb_array", None]
    scenes = env.scenes([1])
    assert scenes is not None
    assert [bool(one) for one in scenes] == [False, True, False]


def test_large_pictures_are_scaled_down() -> None:
    env = batch("Large")
    env.draw_rows([0])
    env.reset([0, 1, 2])
    frame = shown(env, 0)
    assert frame.shape == (80, 320, 3)
    assert env.own_render is not None
    assert env.own_render.size == (640, 2560)


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("name", ["Square", "DrawsNumbers"])
def test_drawing_changes_no_env_step(
    name: str, autoreset: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def played(*, drawn: bool) -> list[Any]:
        env = batch(name, autoreset)
        np.random.seed(7)  # noqa: NPY002
        if drawn:
            env.draw_rows([0, 1])
        told: list[Any] = [env.reset([4, 5, 6])]
        for number in range(40):
            assert (env.scenes([0, 1]) is not None) == drawn
            told += env.step(np.array([1, number % 2, 0]))
        return told

    for one, other in zip(played(drawn=False), played(drawn=True), strict=True):
        np.testing.assert_array_equal(one, other)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_drawing_leaves_pythons_random_numbers_alone() -> None:
    """Not part of the test above, because the type checks of tests draw some of them, too."""
    env = batch("DrawsNumbers")
    env.draw_rows([0])
    env.reset([4, 5, 6])
    render, drawn = env.own_render, env._vector.envs[0]
    assert render is not None
    before = random.getstate()
    assert render.picture(drawn)
    assert random.getstate() == before


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Nothing", "its `render()` returned None, expected uint8 (height, width, 3)"),
        ("Text", "its `render()` returned a str, expected uint8 (height, width, 3)"),
        ("Floats", "its `render()` returned float64 of shape (40, 160, 3), expected uint8 of"),
        ("Fails", "its `render()` raised RuntimeError: no graphics library"),
        ("NoGraphics", "its `render()` raised RuntimeError: no screen"),
        ("WindowOnly", ""),
        ("Undrawn", ""),
    ],
)
def test_without_a_render_that_works_there_are_no_pictures(name: str, why: str) -> None:
    env = batch(name)
    env.draw_rows([0])
    env.reset([0, 1, 2])
    assert env.scenes([0]) is None
    assert env.own_render is not None
    assert env.own_render.problem.startswith(why)
    assert bool(env.own_render.problem) == bool(why)
    env.step(np.zeros(ROWS, int))


def test_an_environment_that_cannot_be_made_again_is_not_drawn() -> None:
    env = batch("OneScreen")
    env.draw_rows([0, 1])
    env.reset([0, 1, 2])
    assert env.scenes([0, 1]) is None
    assert env.own_render is not None
    assert "no more screens" in env.own_render.problem
    env.step(np.zeros(ROWS, int))


def test_a_render_that_fails_later_ends_the_pictures() -> None:
    env = batch("FailsLater")
    env.draw_rows([0])
    env.reset([0, 1, 2])
    found = []
    for _ in range(6):
        scenes = env.scenes([0])
        assert scenes is not None
        found.append(bool(scenes[0]))
        env.step(np.zeros(ROWS, int))
    assert found == [True, True, True, False, False, False]
    assert env.own_render is not None
    assert "lost the graphics library" in env.own_render.problem


@pytest.mark.parametrize("env_id", ["gymnasium:CartPole-v1", "gymnasium:InvertedPendulum-v5"])
def test_a_view_of_ours_comes_first(env_id: str) -> None:
    env = make_host(env_id, {}, 1)
    assert isinstance(env, GymnasiumEnv)
    env.draw_rows([0])
    assert env.own_render is None
    env.close()
