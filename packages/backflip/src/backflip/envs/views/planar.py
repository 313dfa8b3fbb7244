"""View of MuJoCo robots that move in one plane, drawn from the poses of their parts.

MuJoCo only computes where the parts are, which takes microseconds and needs no graphics library.
"""

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import numpy as np
from jaxtyping import Float, UInt8

from backflip.core.spec import EnvSpec
from backflip.envs.views import backdrop
from backflip.envs.views.mujoco import refuse_other_model
from backflip.envs.views.mujoco_worker import CAMERA_ARGS
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.planar_camera import camera_of
from backflip.envs.views.planar_figure import ALL, FIXED, MOVING, Figure
from backflip.envs.views.planar_model import PlanarModel
from backflip.envs.views.polygons import paint
from backflip.envs.views.recorded_states import RecordedStates
from backflip.envs.views.view import View, mix

OWN_CAMERA = CAMERA_ARGS | {"default_camera_config", "width", "height"}


def planar_view(spec: EnvSpec, name: str, env_args: Mapping[str, Any]) -> "PlanarView | None":
    """Return the view of an environment; None if it is not planar, or cannot be created here.

    Arguments that choose MuJoCo's camera are left to MuJoCo.

    Args:
        spec: the environment's specification.
        name: Gymnasium's id, or `dm_control:` and a task.
        env_args: the environment's constructor arguments.
    """
    if OWN_CAMERA & env_args.keys():
        return None
    try:
        return PlanarView(spec, name, PlanarModel(name, env_args))
    except Exception:  # noqa: BLE001  (`MujocoView` reports what is wrong when it draws)
        return None


@final
class PlanarView(RecordedStates):
    """Poses are the simulator's positions and velocities.

    Args:
        spec: the environment's specification.
        name: Gymnasium's id, or `dm_control:` and a task.
        planar: the model.
    """

    def __init__(self, spec: EnvSpec, name: str, planar: PlanarModel) -> None:
        self._name, self._planar = name, planar
        self.pixelated = False
        self.fallback: View = NumbersView(spec)
        self._lock = threading.Lock()  # web pages call this from several threads
        self._camera = camera_of(planar)
        self._figure = Figure(planar, self._camera)

    def step_seconds(self) -> float:
        """Return the duration of an env step in the simulator's time."""
        return self._planar.seconds

    def between(
        self,
        before: Float[np.ndarray, "F S"],
        after: Float[np.ndarray, "F S"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F S"]:
        """Return linear interpolations: all positions are lengths and angles."""
        return mix(before, after, share)

    def draw(self, poses: Float[np.ndarray, "F S"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose.

        Raises:
            UserFacingError: the poses are of another model.
        """
        refuse_other_model(self._name, poses.shape[1], self._planar.numbers)
        with self._lock:
            return np.stack([self._frame(pose) for pose in poses])

    def _frame(self, pose: Float[np.ndarray, " S"]) -> UInt8[np.ndarray, "H W 3"]:
        camera, figure = self._camera, self._figure
        if not camera.moves:
            frame, aim, layers = self._still.copy(), camera.centre, MOVING
            placed = self._planar.place(pose)
            outlines = self._planar.outlines(placed)
        else:
            placed = self._planar.place(pose)
            outlines = self._planar.outlines(placed)
            aim, layers = camera.aim(placed.mass, figure.highest(outlines)), ALL
            frame = self._behind(aim)
        paint(frame, figure.polygons(placed, outlines, aim, layers))
        return frame

    @cached_property
    def _still(self) -> UInt8[np.ndarray, "H W 3"]:
        """What does not move, seen by a camera that does not move."""
        frame, aim = self._behind(self._camera.centre), self._camera.centre
        placed = self._planar.place(self._planar.start)
        paint(frame, self._figure.polygons(placed, self._planar.outlines(placed), aim, [FIXED]))
        return frame

    def _behind(self, aim: Float[np.ndarray, "2"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return the ground from the side, or the floor from above."""
        if self._planar.ground is not None:
            return backdrop.ground(self._camera, aim, self._planar.ground)
        return backdrop.floor(self._camera, aim)
