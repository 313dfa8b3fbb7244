"""What a picture of a planar model shows: its scale, and what it follows."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Shaped

from backflip.envs.views.outlines import ENDLESS
from backflip.envs.views.planar_model import PlanarModel, is_below
from backflip.envs.views.sight import HINGE, SLIDE, NotPlanarError
from backflip.envs.views.view import HEIGHT, WIDTH

MARGIN = 14  # pixels around what is shown
GROUND_STRIP = 40  # pixels below the ground's surface
WIDEST = 8.0  # times the model's size: wider limits of a slide are as good as none
SAMPLES = 300  # poses from which the reach of a model is measured
SIZE = np.array([WIDTH, HEIGHT], np.float64)


@final
@dataclass(frozen=True)
class Camera:
    """A camera, the same for all clips of a model.

    Attributes:
        scale: pixels per metre.
        centre: the point in the middle of the picture, on the axes that it does not follow.
        follows: whether it follows the robot's centre of mass, to the right and up.
        top: the height below which the robot stays in the picture; a higher one is followed.
    """

    scale: float
    centre: Float[np.ndarray, "2"]
    follows: Bool[np.ndarray, "2"]
    top: float

    @property
    def moves(self) -> bool:
        """Whether it follows the robot in any direction."""
        return bool(self.follows.any())

    def pixels(
        self, aim: Float[np.ndarray, "2"], points: Float[np.ndarray, "*n 2"]
    ) -> Float[np.ndarray, "*n 2"]:
        """Return where points are in the picture, in pixels from the left and from the top."""
        return SIZE / 2 + self.scale * (points - aim) * [1, -1]

    def aim(self, mass: Float[np.ndarray, "2"], highest: float) -> Float[np.ndarray, "2"]:
        """Return the point in the middle of the picture.

        Args:
            mass: the robot's centre of mass.
            highest: the height of the robot's highest point.
        """
        aim = np.where(self.follows, mass, self.centre)
        if not self.follows[1]:
            aim[1] += max(0.0, highest - self.top)
        return aim


def camera_of(planar: PlanarModel) -> Camera:
    """Return the camera of a model.

    A robot that can move as far as it likes is followed, and seen at the size at which it fits into
    the picture in any pose. Otherwise the picture shows all that can be reached.
    """
    follows = _free_directions(planar)
    if planar.ground is not None:
        follows &= [True, False]
    low, high = _reach(planar, follows)
    if follows[0] and planar.ground is not None:
        low[1] = planar.ground
        scale = _scale(low, high, np.array([2 * MARGIN, GROUND_STRIP + MARGIN]))
        middle = planar.ground + (HEIGHT / 2 - GROUND_STRIP) / scale
        centre = np.array([(low[0] + high[0]) / 2, middle])
    else:
        scale = _scale(low, high, np.array([2 * MARGIN, 2 * MARGIN]))
        centre = (low + high) / 2
    return Camera(scale, centre, follows, float(centre[1] + (HEIGHT / 2 - MARGIN) / scale))


def _scale(
    low: Float[np.ndarray, "2"], high: Float[np.ndarray, "2"], border: Shaped[np.ndarray, "2"]
) -> float:
    """Return the pixels per metre at which a rectangle fits into the picture without a border.

    Raises:
        NotPlanarError: there is nothing in it, or the robot is below the ground.
    """
    size = high - low
    if not (np.isfinite(size).all() and (size > 0).all()):
        raise NotPlanarError("nothing to see")
    return float(((SIZE - border) / size).min())


def _free_directions(planar: PlanarModel) -> Bool[np.ndarray, "2"]:
    """Return whether nothing holds the robot back, to the right and up."""
    model = planar.model
    free = np.zeros(2, bool)
    for joint in np.flatnonzero((model.jnt_type == SLIDE) & ~_limited(planar)):
        if not model.jnt_stiffness[joint] and _is_robots(planar, int(joint)):
            free |= np.abs(planar.directions[joint]) > 0.5
    return free


def _limited(planar: PlanarModel) -> Bool[np.ndarray, " J"]:
    """Return whether each joint has limits that a picture can show."""
    model = planar.model
    width = model.jnt_range[:, 1] - model.jnt_range[:, 0]
    seen = (model.jnt_type == HINGE) | (width <= WIDEST * model.stat.extent)
    return (model.jnt_limited != 0) & seen


def _is_robots(planar: PlanarModel, joint: int) -> bool:
    return is_below(planar.model, int(planar.model.jnt_bodyid[joint]), planar.robot)


def _reach(
    planar: PlanarModel, follows: Bool[np.ndarray, "2"]
) -> tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2"]]:
    """Return the lowest and the highest coordinates of the robot, or of all parts, in any pose.

    Coordinates that the camera follows count from the centre of mass.
    """
    model, rng = planar.model, np.random.default_rng(0)
    parts = [
        number
        for number, part in enumerate(planar.parts)
        if np.abs(part.outline).max() < ENDLESS
        and (not follows.any() or (is_below(model, part.body, planar.robot) and not part.goal))
    ]
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for _ in range(SAMPLES):
        pose = _pose(planar, rng, moves=bool(follows.any()))
        placed = planar.place(np.concatenate([pose, planar.start[model.nq :]]))
        points = planar.outlines(placed)[parts].reshape(-1, 2)
        points = points - np.where(follows, placed.mass, 0.0)
        low, high = np.minimum(low, points.min(0)), np.maximum(high, points.max(0))
    return low, high


def _pose(planar: PlanarModel, rng: np.random.Generator, *, moves: bool) -> Float[np.ndarray, " Q"]:
    """Return random positions of all joints within their limits.

    Slides without limits rest if the camera moves. Otherwise they move by half of the model's size.
    """
    model, rest = planar.model, planar.model.qpos0
    slide = 0.0 if moves else model.stat.extent / 2
    far = np.where(model.jnt_type == HINGE, np.pi, slide)
    low, high = model.jnt_range.T
    limited = _limited(planar)
    return rng.uniform(np.where(limited, low, rest - far), np.where(limited, high, rest + far))
