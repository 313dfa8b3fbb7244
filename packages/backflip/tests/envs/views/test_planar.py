"""Pictures of planar MuJoCo robots."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxtyping import UInt8

from backflip.envs.registry import make_host
from backflip.envs.views.canvas import BACKGROUND, BODY, GOAL, LIMB
from backflip.envs.views.film import film
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.planar import PlanarView, planar_view
from backflip.envs.views.planar_figure import FAR_LIMB
from backflip.envs.views.view import HEIGHT, WIDTH, view_for
from runshelf.errors import UserFacingError

HOPPER, PENDULUM, REACHER, WALKER = "Hopper-v5", "InvertedPendulum-v5", "Reacher-v5", "Walker2d-v5"


def view(name: str, **env_args: Any) -> PlanarView:
    made = planar_view(make_host(name, {}, 1).spec, name, env_args)
    assert made is not None
    return made


def standing(name: str, **changed: float) -> np.ndarray:
    """Return the state of the reference pose, with some positions changed by their joint's name."""
    planar = view(name)._planar
    state = planar.start.copy()
    for joint, position in changed.items():
        state[planar.model.joint(joint).id] = position
    return state


def pixels(there: PlanarView, state: np.ndarray, point: tuple[float, float]) -> tuple[int, int]:
    """Return the column and the row of a point in metres, seen by a camera that does not move."""
    camera = there._camera
    x, y = camera.pixels(camera.centre, np.array(point))
    return int(x), int(y)


def of_colour(frame: UInt8[np.ndarray, "H W 3"], colour: tuple[int, ...]) -> np.ndarray:
    """Return the rows and columns of the pixels of a colour."""
    return np.argwhere((frame == colour).all(2))


def robot(frame: UInt8[np.ndarray, "H W 3"]) -> set[tuple[int, int]]:
    return {tuple(place) for colour in (BODY, LIMB) for place in of_colour(frame, colour).tolist()}


@pytest.mark.medium
def test_pendulum_is_drawn_where_it_is() -> None:
    """The pole is .6 m long: a quarter turn moves its tip from above the cart to its right."""
    there = view(PENDULUM)
    up = standing(PENDULUM, slider=0.5)
    right = standing(PENDULUM, slider=0.5, hinge=np.pi / 2)
    frames = there.draw(np.stack([up, right]))
    assert frames.shape == (2, HEIGHT, WIDTH, 3)
    tips = [pixels(there, up, (0.5, 0.5)), pixels(there, right, (1.0, 0.0))]
    for number, frame in enumerate(frames):
        drawn = [tuple(frame[row, column]) == LIMB for column, row in tips]
        assert drawn == [number == 0, number == 1]
        column, row = pixels(there, up, (0.42, 0.0))
        assert tuple(frame[row, column]) == BODY


@pytest.mark.medium
def test_camera_follows_the_hopper_and_the_ground_scrolls() -> None:
    there = view(HOPPER)
    here, near, far = there.draw(
        np.stack([standing(HOPPER, rootx=x) for x in (0.0, 0.5, 20.0)]).astype(np.float64)
    )
    assert robot(here) == robot(near) == robot(far)
    np.testing.assert_array_equal(here, far)  # an even number of marks further
    assert (here != near)[210:].any(2).mean() > 0.2
    np.testing.assert_array_equal(here[:190], near[:190])


@pytest.mark.medium
def test_height_is_seen_and_a_high_robot_stays_in_the_picture() -> None:
    """A jump of .5 m moves the robot up by as many pixels; at 9 m the ground is out of sight."""
    there = view(HOPPER)
    floor, jump, high = there.draw(
        np.stack([standing(HOPPER, rootz=1.25 + rise) for rise in (0.0, 0.5, 9.0)])
    )
    tops = [of_colour(frame, BODY)[:, 0].min() for frame in (floor, jump, high)]
    assert tops[0] - tops[1] == pytest.approx(0.5 * there._camera.scale, abs=1)
    np.testing.assert_array_equal(floor[205:], jump[205:])
    assert 5 <= tops[2] <= 30
    assert (high[230] == BACKGROUND).all(1).mean() > 0.9


@pytest.mark.medium
@pytest.mark.parametrize("name", [HOPPER, WALKER, "HalfCheetah-v5", "Swimmer-v5", REACHER])
def test_every_joint_changes_the_picture(name: str) -> None:
    """But for the slides that the camera follows, which move the ground instead."""
    there = view(name)
    planar = there._planar
    rest = there.draw(planar.start[None])[0]
    for joint in range(planar.model.njnt):
        state = planar.start.copy()
        state[joint] += 0.13
        assert (there.draw(state[None])[0] != rest).any(2).sum() > 20


@pytest.mark.medium
def test_reachers_target_is_at_its_place() -> None:
    there = view(REACHER)
    start = standing(REACHER)
    for x, y in ((0.0, 0.2), (-0.15, -0.1)):
        state = start.copy()
        state[2] += x - 0.1  # at 0 the target is at (.1, -.1)
        state[3] += y + 0.1
        goal = of_colour(there.draw(state[None])[0], GOAL)
        column, row = pixels(there, state, (x, y))
        np.testing.assert_allclose(goal.mean(0), [row, column], atol=1.5)


@pytest.mark.medium
def test_two_legs_differ() -> None:
    """The right leg of the walker, the first in its model, covers the left one."""
    apart = standing(WALKER, thigh_joint=-0.6)
    frames = view(WALKER).draw(np.stack([standing(WALKER), apart]))
    near, far = ([len(of_colour(frame, colour)) for frame in frames] for colour in (LIMB, FAR_LIMB))
    assert min(near) > 400
    assert (far[0] < 50, far[1] > 400) == (True, True)


@pytest.mark.medium
def test_film_of_a_clip() -> None:
    """Hopper's env step is four of 0.002 s: 10 of them take 12.5 times as long, 3 frames each."""
    there = view(HOPPER)
    obs, alive = np.zeros((10, 11), np.float32), np.arange(10) < 5
    scene = np.stack([standing(HOPPER, rooty=-0.02 * step) for step in range(10)])
    movie = film(there, obs, obs, scene.astype(np.float32), alive)
    assert movie.frames.shape == (31, HEIGHT, WIDTH, 3)
    assert movie.fps == pytest.approx(30)
    assert movie.slowdown == pytest.approx(12.5)
    moving = movie.frames[:16]
    assert (moving[1:] != moving[:-1]).any(axis=(1, 2, 3)).all()  # between env steps too
    np.testing.assert_array_equal(movie.frames[3], there.draw(scene[1:2].astype(np.float32))[0])
    assert movie.frames[16:].mean() < 0.6 * movie.frames[15].mean()


@pytest.mark.medium
def test_constructor_arguments_are_honoured(tmp_path: Any) -> None:
    """Another model, and another duration of an env step."""
    xml = tmp_path / "short.xml"
    xml.write_text(
        "<mujoco><worldbody><body><joint type='slide' axis='1 0 0'/><geom size='.1'/>"
        "<body><joint type='hinge' axis='0 1 0'/><geom type='capsule' size='.05' "
        "fromto='0 0 0 0 0 .2'/></body></body></worldbody></mujoco>"
    )
    own, usual = view(PENDULUM, xml_file=str(xml), frame_skip=5), view(PENDULUM)
    assert own.step_seconds() == pytest.approx(0.01)
    assert usual.step_seconds() == pytest.approx(0.04)
    state = np.zeros((1, 4))
    assert (own.draw(state) != usual.draw(state)).any()


def chain(folder: Path, slide: str, ground: str = "") -> PlanarView | None:
    """Return the view of a pole on a slide with the given attributes."""
    xml = folder / "own.xml"
    xml.write_text(
        f"<mujoco><worldbody>{ground}<body pos='0 0 1'><joint type='slide' axis='1 0 0' {slide}/>"
        "<geom size='.1'/><body><joint axis='0 1 0'/><geom type='capsule' size='.05' "
        "fromto='0 0 0 0 0 .5'/></body></body></worldbody></mujoco>"
    )
    return planar_view(make_host(PENDULUM, {}, 1).spec, PENDULUM, {"xml_file": str(xml)})


@pytest.mark.medium
@pytest.mark.parametrize(
    ("slide", "follows"),
    [
        ("", True),
        ("range='-1 1'", False),
        ("range='-500 500'", True),
        ("stiffness='3'", False),
    ],
)
def test_camera_follows_what_can_go_far(slide: str, follows: bool, tmp_path: Path) -> None:
    """But the robot is never drawn smaller than it can be seen."""
    there = chain(tmp_path, slide)
    assert there is not None
    assert there._camera.follows.tolist() == [follows, False]
    assert there._camera.scale > 40


def test_robot_below_the_ground_is_left_to_mujoco(tmp_path: Path) -> None:
    ground = "<geom type='plane' size='9 9 1' pos='0 0 5'/>"
    assert chain(tmp_path, "", ground) is None


def test_clips_without_scenes_are_drawn_as_bars() -> None:
    there = view(HOPPER)
    assert isinstance(view_for(there, np.zeros(0, np.float32)), NumbersView)
    assert view_for(there, standing(HOPPER)[None]) is there


@pytest.mark.medium
def test_scene_of_another_model_is_refused() -> None:
    with pytest.raises(UserFacingError, match="has 5 numbers, but its model has 4"):
        view(PENDULUM).draw(np.zeros((1, 5)))


@pytest.mark.medium
@pytest.mark.parametrize(
    "broken",
    [
        np.nan,
        pytest.param(np.inf, marks=pytest.mark.slow),
        pytest.param(1e12, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", [HOPPER, REACHER])
def test_simulation_that_fails_has_a_picture(name: str, broken: float) -> None:
    state = standing(name)
    for number in range(4):
        state[number] = broken
        assert view(name).draw(state[None]).shape == (1, HEIGHT, WIDTH, 3)


@pytest.mark.medium
def test_threads_share_a_view() -> None:
    there = view(HOPPER)
    states = [standing(HOPPER, rooty=0.1 * turn)[None] for turn in range(8)]
    alone = [there.draw(state) for state in states]
    with ThreadPoolExecutor(4) as pool:
        for frames, expected in zip(pool.map(there.draw, states * 5), alone * 5, strict=True):
            np.testing.assert_array_equal(frames, expected)


@pytest.mark.medium
@pytest.mark.parametrize(
    "task",
    [
        "walker-walk",
        pytest.param("cheetah-run", marks=pytest.mark.slow),
        pytest.param("swimmer-swimmer6", marks=pytest.mark.slow),
        pytest.param("ball_in_cup-catch", marks=pytest.mark.slow),
    ],
)
def test_planar_tasks_of_dm_control(task: str) -> None:
    name = f"dm_control:{task}"
    env = make_host(name, {}, 2)
    env.reset([0, 1])
    there = planar_view(env.spec, name, {})
    assert there is not None
    one, other = there.draw(env.scenes().astype(np.float64))
    assert (one != other).any(2).sum() > 200
    assert len(of_colour(one, BODY)) > 50
    env.close()


@pytest.mark.medium
def test_target_outside_the_picture_is_at_its_border() -> None:
    name = "dm_control:swimmer-swimmer6"
    there = planar_view(make_host(name, {}, 1).spec, name, {})
    assert there is not None
    state = there._planar.start.copy()
    state[-3:] = [50.0, 0.0, 0.0]
    goal = of_colour(there.draw(state[None])[0], GOAL)
    assert goal[:, 1].max() == WIDTH - 1
    assert len(goal) > 50


@pytest.mark.medium
def test_tasks_in_space_are_left_to_mujoco() -> None:
    name = "dm_control:quadruped-walk"
    assert planar_view(make_host(name, {}, 1).spec, name, {}) is None
