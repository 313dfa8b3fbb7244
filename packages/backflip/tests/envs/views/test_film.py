"""Movies have the frames and the frame rate computed by hand."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.views.choose import VIEWS
from backflip.envs.views.film import DIMMED, Movie, agent_film, ended, film
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.view import View

NOTHING = np.zeros(0, np.float32)
WIDTHS = {"Acrobot": 6, "CartPole": 4, "MountainCar": 2, "MountainCarContinuous": 2, "Pendulum": 3}


def spec(shape: tuple[int, ...], dtype: Any = np.float32) -> EnvSpec:
    box = Box(np.zeros(shape, dtype), np.full(shape, 255, dtype), np.dtype(dtype))
    return EnvSpec("x", box, Discrete(2), None)


def observations(name: str, length: int) -> np.ndarray:
    if name == "dot":
        return np.full((length, 84, 84, 1), 7, np.uint8)
    return np.random.default_rng(0).uniform(-0.2, 0.2, (length, WIDTHS[name])).astype(np.float32)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "length", "frames", "fps", "slowdown"),
    [
        # 25 steps of 4/60 s in real time, two frames in each.
        ("dot", 25, 51, 30.0, 1.0),
        # 0.5 s shown in 1: 1.2 frames in a step would make 30 in a second, so two.
        ("CartPole", 25, 51, 50.0, 2.0),
        ("CartPole", 50, 51, 50.0, 1.0),
        ("CartPole", 100, 101, 50.0, 1.0),
        # 30 steps in a second are 30 frames: one in each; 6 steps are five in each, which rounding
        # makes 5.000000000000001.
        ("CartPole", 30, 31, 30.0, 1 / 0.6),
        ("CartPole", 6, 31, 30.0, 1 / 0.12),
        ("Pendulum", 25, 51, 40.0, 1.0),
        ("Acrobot", 10, 61, 30.0, 1.0),
        ("Acrobot", 4, 33, 32.0, 1.25),
        ("MountainCar", 60, 61, 30.0, 1.0),
        ("MountainCarContinuous", 15, 31, 30.0, 2.0),
    ],
)
def test_frame_rate_by_hand(
    name: str, length: int, frames: int, fps: float, slowdown: float
) -> None:
    obs = observations(name, length)
    movie = film(VIEWS[name], obs, obs, NOTHING, np.ones(length, bool))
    assert len(movie.frames) == frames
    assert movie.fps == pytest.approx(fps)
    assert movie.slowdown == pytest.approx(slowdown)
    assert movie.pixelated == (name == "dot")
    seconds = length * VIEWS[name].step_seconds()
    assert (len(movie.frames) - 1) / movie.fps == pytest.approx(seconds * slowdown)


@pytest.mark.parametrize("length", range(1, 120))
@pytest.mark.parametrize("view", [PixelsView(), PixelsView(0.02), PixelsView(0.2)], ids=str)
def test_every_movie_has_30_fps_and_one_second_or_more(view: View, length: int) -> None:
    images = np.zeros((length, 1, 1, 1), np.uint8)
    movie = film(view, images, images, NOTHING, np.ones(length, bool))
    assert movie.fps >= 30 - 1e-3
    assert movie.slowdown >= 1
    assert (len(movie.frames) - 1) / movie.fps >= 1 - 1e-9
    assert (len(movie.frames) - 1) % length == 0


def numbered(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return grey images before each step, 10 apart, and next ones, 5 brighter."""
    obs = (10 * np.arange(1, length + 1, dtype=np.uint8)).reshape(-1, 1, 1, 1)
    return obs, obs + 5


def greys(movie: Movie) -> list[int]:
    return movie.frames[:, 0, 0, 0].tolist()


def test_images_are_repeated_until_the_next_env_step() -> None:
    obs, next_obs = numbered(15)
    movie = film(PixelsView(), obs, next_obs, NOTHING, np.ones(15, bool))
    expected = [grey for grey in range(10, 160, 10) for _ in range(2)] + [155]
    assert greys(movie) == expected


def test_after_the_end_the_last_frame_is_repeated_darkened() -> None:
    """Five steps of 1/5 s with six frames each; two are alive."""
    obs, next_obs = numbered(5)
    lived = np.arange(5) < 2
    movie = film(PixelsView(0.2), obs, next_obs, NOTHING, lived)
    assert greys(movie) == [10] * 6 + [20] * 6 + [25] + [round(25 * DIMMED)] * 18


@pytest.mark.medium
@pytest.mark.parametrize("name", sorted(WIDTHS))
def test_end_of_an_episode_shows_the_last_next_observation(name: str) -> None:
    """The padding after it is not shown."""
    length, alive = 20, 7
    obs, lived = observations(name, length), np.arange(length) < alive
    next_obs = observations(name, length)[::-1].copy()
    movie = film(VIEWS[name], obs, next_obs, NOTHING, lived)
    per_step = (len(movie.frames) - 1) // length
    poses = VIEWS[name].poses(next_obs[alive - 1 : alive], next_obs[:1], NOTHING)
    final = VIEWS[name].draw(poses[:1])[0]
    np.testing.assert_array_equal(movie.frames[alive * per_step], final)
    behind = movie.frames[alive * per_step + 1 :]
    assert len(behind) == (length - alive) * per_step
    for frame in behind:
        np.testing.assert_array_equal(frame, ended(final))
    assert behind.mean() < 0.6 * final.mean()


def test_large_frames_say_ended() -> None:
    large = ended(np.full((240, 320, 3), 100, np.uint8))
    np.testing.assert_array_equal(large[60:], 45)
    assert large[:40].max() == 255
    # Centred: as much of it left of the middle as right.
    columns = np.flatnonzero((large[:40] > 45).any((0, 2)))
    assert abs((columns[0] + columns[-1]) / 2 - 160) < 3
    np.testing.assert_array_equal(ended(np.full((40, 40, 3), 100, np.uint8)), 45)


@pytest.mark.parametrize("alive", [1, 3, 6])
def test_agent_movie_has_the_same_frame_rate(alive: int) -> None:
    length = 6
    obs, next_obs = numbered(length)
    lived = np.arange(length) < alive
    shown = film(VIEWS["CartPole"], *[observations("CartPole", length)] * 2, NOTHING, lived)
    movie = agent_film(spec((1, 1, 1), np.uint8), obs, lived, shown)
    assert len(movie.frames) == len(shown.frames)
    assert (movie.fps, movie.slowdown) == (shown.fps, shown.slowdown)
    assert movie.pixelated
    per_step = (len(shown.frames) - 1) // length
    grey = greys(movie)
    for step in range(length):
        expected = {10 * (step + 1)} if step < alive else {round(10 * alive * DIMMED)}
        first = step * per_step + (step == alive)
        assert set(grey[first : (step + 1) * per_step]) == expected
    del next_obs


def test_agent_movie_of_vectors_shows_bars() -> None:
    obs = observations("CartPole", 6)
    shown = film(VIEWS["CartPole"], obs, obs, NOTHING, np.ones(6, bool))
    bars = NumbersView(spec((4,)))
    movie = agent_film(spec((4,)), obs, np.ones(6, bool), shown)
    assert movie.frames.shape == shown.frames.shape
    per_step = (len(shown.frames) - 1) // 6
    poses = bars.poses(obs, obs, NOTHING)
    np.testing.assert_array_equal(movie.frames[:-1:per_step], bars.draw(poses)[:6])


@pytest.mark.medium
def test_film_does_not_import_jax() -> None:
    program = (
        "import sys, numpy as np\n"
        "from backflip.core.spec import Box, Discrete, EnvSpec\n"
        "from backflip.envs.views.choose import view_of\n"
        "from backflip.envs.views.film import agent_film, film\n"
        "high = np.ones(4, np.float32)\n"
        "spec = EnvSpec('CartPole-v1', Box(-high, high, high.dtype), Discrete(2), None)\n"
        "obs, lived = np.zeros((5, 4), np.float32), np.ones(5, bool)\n"
        "movie = film(view_of(spec.id, spec, {}), obs, obs, np.zeros(0, np.float32), lived)\n"
        "agent_film(spec, obs, lived, movie)\n"
        "print([name for name in ('jax', 'optax', 'gymnasium', 'mujoco') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"
