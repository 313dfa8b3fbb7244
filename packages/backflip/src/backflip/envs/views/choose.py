"""The choice of a view for an environment."""

from collections.abc import Mapping
from typing import Any

from backflip.core.spec import EnvSpec
from backflip.envs.ids import ATARI_PREFIX, CONTROL_PREFIX, FIXED_PREFIX, HOST_PREFIX, family
from backflip.envs.views.acrobot import AcrobotView
from backflip.envs.views.cartpole import CartPoleView
from backflip.envs.views.dot import DotView
from backflip.envs.views.frozen_lake import FrozenLakeView
from backflip.envs.views.minatar import MinAtarView, is_planes
from backflip.envs.views.mountain_car import MountainCarView
from backflip.envs.views.mujoco import MujocoView, is_mujoco
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pendulum import PendulumView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.view import View

ATARI_FRAMES = 60  # frames per second
ATARI_SKIP = 4  # default frames per env step
# For the native environments and all versions of Gymnasium's, which have equal observations.
VIEWS: dict[str, View] = {
    "dot": DotView(),
    "Acrobot": AcrobotView(),
    "CartPole": CartPoleView(),
    "FrozenLake": FrozenLakeView(),
    "FrozenLake8x8": FrozenLakeView(),
    "MountainCar": MountainCarView(),
    "MountainCarContinuous": MountainCarView(goal=0.45),
    "Pendulum": PendulumView(),
}


def view_of(env_id: str, spec: EnvSpec, env_args: Mapping[str, Any]) -> View:
    """Return the view of an environment; without its own view, bars or the observed image.

    Args:
        env_id: the environment's id.
        spec: the environment's specification.
        env_args: its constructor arguments.
    """
    name = env_id.removeprefix(HOST_PREFIX).removeprefix(FIXED_PREFIX)
    view = VIEWS.get(family(env_id))
    if view is not None and "desc" not in env_args:  # `desc` is a custom map of FrozenLake
        return view
    if is_planes(spec):
        return MinAtarView()
    if env_id.startswith(ATARI_PREFIX):
        return PixelsView(env_args.get("frameskip", ATARI_SKIP) / ATARI_FRAMES)
    if spec.is_pixels:
        return PixelsView()
    if name.startswith(CONTROL_PREFIX) or is_mujoco(name):
        return MujocoView(spec, name, env_args)
    return NumbersView(spec)
