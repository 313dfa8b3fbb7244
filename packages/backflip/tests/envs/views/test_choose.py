"""Every environment has a view."""

from typing import Any

import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.ids import NATIVE
from backflip.envs.registry import make_native
from backflip.envs.views.acrobot import AcrobotView
from backflip.envs.views.cartpole import CartPoleView
from backflip.envs.views.choose import view_of
from backflip.envs.views.dot import DotView
from backflip.envs.views.frozen_lake import FrozenLakeView
from backflip.envs.views.minatar import MinAtarView
from backflip.envs.views.mountain_car import MountainCarView
from backflip.envs.views.mujoco import MujocoView
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pendulum import PendulumView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.planar import PlanarView
from backflip.envs.views.rendered import RenderedView
from backflip.envs.views.view import View, view_for

HIGH = np.ones(4, np.float32)
VECTOR = EnvSpec("x", Box(-HIGH, HIGH, HIGH.dtype), Discrete(2), None)
WHITE = np.full((96, 96, 3), 255, np.uint8)
PIXELS = EnvSpec("x", Box(WHITE * 0, WHITE, WHITE.dtype), Discrete(2), None)
ONES = np.ones((10, 10, 4), np.uint8)
PLANES = EnvSpec("x", Box(ONES * 0, ONES, ONES.dtype), Discrete(2), None)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env_id", "kind"),
    [
        ("dot", DotView),
        ("Acrobot-v1", AcrobotView),
        ("CartPole-v1", CartPoleView),
        ("gymnasium:CartPole-v0", CartPoleView),
        ("MountainCar-v0", MountainCarView),
        ("gymnasium:MountainCarContinuous-v0", MountainCarView),
        ("gymnasium:Pendulum-v1", PendulumView),
        ("Hopper-v5", PlanarView),
        ("fixed:Hopper-v5", PlanarView),
        ("gymnasium:Hopper-v4", PlanarView),
        ("gymnasium:InvertedPendulum-v5", PlanarView),
        ("Ant-v5", MujocoView),
        ("FrozenLake-v1", FrozenLakeView),
        ("gymnasium:FrozenLake8x8-v1", FrozenLakeView),
        ("probe:1", NumbersView),
        ("module:CartPole", RenderedView),
        ("module:Hopper-v5", RenderedView),
        ("Taxi-v3", RenderedView),
    ],
)
def test_by_name(env_id: str, kind: type) -> None:
    view = view_of(env_id, VECTOR, {})
    assert isinstance(view, kind)


@pytest.mark.parametrize("args", [{"camera_id": 0}, {"width": 64}, {"xml_file": "missing.xml"}])
def test_mujoco_draws_what_we_cannot(args: dict[str, Any]) -> None:
    """Arguments of its camera are for its own pictures; a mistake is reported when it draws."""
    assert isinstance(view_of("gymnasium:Hopper-v5", VECTOR, args), MujocoView)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env_id", "kind"),
    [("Hopper", PlanarView), pytest.param("Ant", MujocoView, marks=pytest.mark.slow)],
)
def test_a_penalty_does_not_change_how_a_robot_is_drawn(env_id: str, kind: type) -> None:
    view = view_of(f"fixed:{env_id}-v5", VECTOR, {"penalty": "smooth"})
    assert isinstance(view, kind)
    assert view.step_seconds() == view_of(f"{env_id}-v5", VECTOR, {}).step_seconds()


def test_custom_lake_draws_itself() -> None:
    view = view_of("gymnasium:FrozenLake-v1", VECTOR, {"desc": ("SFF", "FHF", "FFG")})
    assert isinstance(view, RenderedView)


def test_binary_planes_have_the_minatar_view() -> None:
    assert isinstance(view_of("MinAtar/Seaquest-v1", PLANES, {}), MinAtarView)


@pytest.mark.parametrize(
    ("spec", "kind"), [(VECTOR, NumbersView), (PIXELS, PixelsView), (PLANES, MinAtarView)]
)
def test_without_pictures_of_its_own_the_observation_is_drawn(spec: EnvSpec, kind: type) -> None:
    view = view_of("module:Game", spec, {})
    for scene in (np.zeros(0, np.float32), np.zeros((1, 4), np.float32)):
        assert isinstance(view_for(view, scene), kind)


@pytest.mark.parametrize("env_id", sorted(NATIVE))
def test_every_native_environment_has_a_view(env_id: str) -> None:
    env = make_native(env_id)
    assert env is not None
    view = view_of(env_id, env.spec, {})
    box, stack = env.spec.observation, env.spec.frame_stack
    obs = np.where(np.isfinite(box.high), box.high, 0).astype(box.dtype)
    obs = np.stack([obs, obs])[..., -(box.shape[-1] // stack) :]  # the newest frame
    assert isinstance(view, View)
    poses = view.poses(obs, obs, np.zeros(0, np.float32))
    assert view.draw(poses).dtype == np.uint8


@pytest.mark.parametrize(("args", "seconds"), [({}, 4 / 60), ({"frameskip": 1}, 1 / 60)])
def test_env_step_of_atari_lasts_its_frames(args: dict[str, int], seconds: float) -> None:
    view = view_of("ALE/Pong-v5", PIXELS, args)
    assert isinstance(view, PixelsView)
    assert view.step_seconds() == pytest.approx(seconds)
