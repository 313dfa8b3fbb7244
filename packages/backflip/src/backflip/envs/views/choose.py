"""The choice of a view for an environment."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from backflip.core.spec import EnvSpec
from backflip.envs.arguments import PENALTY
from backflip.envs.ids import (
    ATARI_PREFIX,
    CONTROL_PREFIX,
    FIXED_PREFIX,
    HOST_PREFIX,
    NATIVE,
    family,
)
from backflip.envs.metadata import render_fps
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
from backflip.envs.views.planar import planar_view
from backflip.envs.views.rendered import RenderedView
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
    """Return the view of an environment.

    Without a view of ours, it is the environment's own render, or, in clips without its pictures,
    the observed image or bars.

    Args:
        env_id: the environment's id.
        spec: the environment's specification.
        env_args: its constructor arguments.
    """
    known = VIEWS.get(family(env_id))
    if known is not None and _is_usual(env_args):
        return known
    if env_id.startswith(ATARI_PREFIX):
        return PixelsView(env_args.get("frameskip", ATARI_SKIP) / ATARI_FRAMES)
    name = _name(env_id)
    if _is_simulated(name):
        drawn = {key: value for key, value in env_args.items() if key != PENALTY.name}
        return planar_view(spec, name, drawn) or MujocoView(spec, name, drawn)
    seen = observation_view(spec)
    return seen if env_id in NATIVE else RenderedView(seen, partial(render_fps, env_id))


def observation_view(spec: EnvSpec) -> View:
    """Return a view of the observation: a board of planes, the image, or bars."""
    if is_planes(spec):
        return MinAtarView()
    return PixelsView() if spec.is_image else NumbersView(spec)


def draws_itself(env_id: str, env_args: Mapping[str, Any]) -> bool:
    """Return whether an environment outside JAX has no view of ours, so that its render is used."""
    if env_id.startswith(ATARI_PREFIX) or _is_simulated(_name(env_id)):
        return False
    return family(env_id) not in VIEWS or not _is_usual(env_args)


def _is_usual(env_args: Mapping[str, Any]) -> bool:
    return "desc" not in env_args  # `desc` is a custom map of FrozenLake


def _is_simulated(name: str) -> bool:
    """Return whether MuJoCo draws an environment from recorded states."""
    return name.startswith(CONTROL_PREFIX) or is_mujoco(name)


def _name(env_id: str) -> str:
    return env_id.removeprefix(HOST_PREFIX).removeprefix(FIXED_PREFIX)
