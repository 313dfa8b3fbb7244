"""The MuJoCo view draws recorded states like the live environment, in a worker process.

These tests need EGL or OSMesa. Without either they fail and name the packages to install.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from backflip.envs.registry import make_host
from backflip.envs.views.film import film
from backflip.envs.views.mujoco import MujocoView
from backflip.envs.views.mujoco_worker import Message, receive, send
from backflip.envs.views.numbers import NumbersView
from runshelf.errors import UsageError, UserFacingError

HOPPER, PENDULUM = "Hopper-v5", "InvertedPendulum-v5"
# What a live environment draws, in a process in which the same library draws.
LIVE = """
import sys, gymnasium, mujoco, numpy as np
name, camera, folder = sys.argv[1:]
args = {"camera_name": camera} if camera else {}
env = gymnasium.make(name, render_mode="rgb_array", width=320, height=240, **args)
state = env.unwrapped
state.set_state(state.init_qpos, state.init_qvel)
env.unwrapped.render()  # the camera keeps the position of the first picture
env.reset(seed=3)
frames, scenes = [], []
for number in range(6):
    data = state.data
    mujoco.mj_forward(state.model, data)  # a live picture is a substep behind the state
    frames.append(env.render())
    scenes.append(np.concatenate([data.qpos, data.qvel]))
    action = env.action_space
    env.step(action.low + (action.high - action.low) * (number % 3) / 2)
np.savez(folder, frames=frames, scenes=scenes)
"""


def view(name: str, **env_args: Any) -> MujocoView:
    return MujocoView(make_host(name, {}, 1).spec, name, env_args)


def pid_of(there: Any) -> int:
    return there._worker._process.pid


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "camera"), [(PENDULUM, ""), pytest.param(HOPPER, "track", marks=pytest.mark.slow)]
)
def test_frames_equal_those_of_the_live_environment(name: str, camera: str, tmp_path: Any) -> None:
    """Equal bit for bit; from states rounded to float32, as in clips, except for a few edges."""
    there = view(name)
    drawn_with = there.library
    command = [sys.executable, "-c", LIVE, name, camera, str(tmp_path / "live.npz")]
    environment = os.environ | {"MUJOCO_GL": drawn_with}
    subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
    live = np.load(tmp_path / "live.npz")
    frames = there.draw(live["scenes"])
    assert frames.shape == (6, 240, 320, 3)
    np.testing.assert_array_equal(frames, live["frames"])
    rounded = there.draw(live["scenes"].astype(np.float32).astype(np.float64))
    different = (np.abs(rounded.astype(int) - frames) > 1).any(3).sum((1, 2))
    assert different.max() <= 50  # of 76,800 pixels
    # And they are pictures of different moments.
    moved = (np.abs(frames[1:].astype(int) - frames[:-1]) > 30).any(3).sum((1, 2))
    assert moved.min() > 10


@pytest.mark.slow
def test_camera_follows_the_body() -> None:
    """20 m further, the hopper is at the same place in the picture."""
    there = view(HOPPER)
    here, far = np.zeros(12), np.zeros(12)
    here[1] = far[1] = 1.25
    far[0] = 20.0
    one, other = there.draw(np.stack([here, far])).astype(int)
    # Nothing else is as red as that, but for its reflection, which is in the floor's squares.
    body, there_too = ((frame[..., 0] - frame[..., 2] > 30).astype(int) for frame in (one, other))
    assert body[:, 150:170].sum() > 500
    assert (body != there_too).sum() < 0.2 * body.sum()


@pytest.mark.slow
def test_movie_has_the_simulators_time() -> None:
    """Hopper's env step is four of 0.002 s: 10 of them take 12.5 times as long, 3 frames each."""
    there = view(HOPPER)
    assert there.step_seconds() == pytest.approx(0.008)
    obs = np.zeros((10, 11), np.float32)
    scene = np.zeros((10, 12), np.float32)
    scene[:, 1] = 1.25
    lived = np.arange(10) < 2
    movie = film(there, obs, obs, scene, lived)
    assert movie.frames.shape == (31, 240, 320, 3)
    assert movie.fps == pytest.approx(30)
    assert movie.slowdown == pytest.approx(12.5)
    assert movie.frames[7:].mean() < 0.6 * movie.frames[6].mean()


@pytest.mark.medium
def test_clips_without_scenes_are_drawn_as_bars() -> None:
    """No process is started for them."""
    there = view(HOPPER)
    obs = np.random.default_rng(0).normal(size=(5, 11)).astype(np.float32)
    plain = np.zeros(0, np.float32)
    movie = film(there, obs, obs, plain, np.ones(5, bool))
    expected = film(NumbersView(make_host(HOPPER, {}, 1).spec), obs, obs, plain, np.ones(5, bool))
    np.testing.assert_array_equal(movie.frames, expected.frames)
    assert not there.started


@pytest.mark.slow
def test_quaternions_stay_normalised_and_take_the_shortest_turn() -> None:
    """The position of Ant's trunk is in the first three numbers, its rotation in the next four."""
    there = view("Ant-v5")
    before, after = np.zeros((1, 29)), np.zeros((1, 29))
    after[0, 0] = 1.0
    before[0, 3:7] = [1, 0, 0, 0]
    half = np.sqrt(0.5)
    after[0, 3:7] = [-half, 0, 0, -half]  # a quarter turn about the vertical, as -q
    (middle,) = there.between(before, after, np.array([0.5]))
    assert middle[0] == 0.5
    eighth = np.pi / 8
    np.testing.assert_allclose(middle[3:7], [np.cos(eighth), 0, 0, np.sin(eighth)], atol=1e-12)


@pytest.mark.medium
def test_crashed_process_is_reported_and_restarted() -> None:
    there = view(PENDULUM)
    scene = np.zeros((1, 4))
    first = there.draw(scene)
    os.kill(pid_of(there), signal.SIGSTOP)

    def crash() -> None:
        os.kill(pid_of(there), signal.SIGKILL)

    timer = threading.Timer(0.3, crash)
    timer.start()
    with pytest.raises(UserFacingError, match=r"draws `InvertedPendulum-v5` ended with status -9"):
        there.draw(scene)
    timer.join()
    np.testing.assert_array_equal(there.draw(scene), first)


@pytest.mark.slow
def test_process_ends_with_its_view() -> None:
    there = view(PENDULUM)
    there.draw(np.zeros((1, 4)))
    pid = pid_of(there)
    os.kill(pid, 0)
    del there
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.medium
def test_missing_graphics_library_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    with pytest.raises(UsageError, match=r"nonsense: .*; try: apt-get install libegl1 libgl1") as e:
        view(PENDULUM).draw(np.zeros((1, 4)))
    assert "\n" not in str(e.value)
    assert "MUJOCO_GL" in str(e.value)


@pytest.mark.slow
def test_invalid_arguments_are_not_a_drawing_error() -> None:
    with pytest.raises(UserFacingError, match=r"cannot be created for drawing: TypeError") as e:
        view(PENDULUM, frame_skip="x").draw(np.zeros((1, 4)))
    assert not isinstance(e.value, UsageError)


@pytest.mark.slow
def test_scene_of_another_model_is_refused() -> None:
    with pytest.raises(UserFacingError, match="has 5 numbers, but its model has 4"):
        view(PENDULUM).draw(np.zeros((1, 5)))


def test_messages_may_arrive_in_pieces() -> None:
    reading, writing = os.pipe()
    content = bytes(range(256)) * 2000  # more than a pipe holds
    writer = threading.Thread(target=send, args=(writing, Message(b"x", content)), daemon=True)
    writer.start()
    assert receive(reading, 5.0) == Message(b"x", content)
    writer.join()
    with pytest.raises(TimeoutError):
        receive(reading, 0.05)
    os.close(writing)
    with pytest.raises(EOFError):
        receive(reading)
    os.close(reading)
