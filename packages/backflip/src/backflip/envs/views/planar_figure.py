"""How the parts of a planar model are drawn: their colours, and which one covers another."""

from collections.abc import Container, Mapping
from itertools import pairwise
from typing import final

import numpy as np
from jaxtyping import Float

from backflip.envs.views.canvas import (
    BACKGROUND,
    BODY,
    BODY_DARK,
    GOAL,
    GROUND,
    JOINT,
    LIMB,
    Colour,
)
from backflip.envs.views.outlines import DIRECTIONS
from backflip.envs.views.planar_camera import SIZE, Camera
from backflip.envs.views.planar_model import Placed, PlanarModel, is_below
from backflip.envs.views.polygons import Polygon

FAR_LIMB, FAR_JOINT = (176, 112, 90), (196, 164, 152)
EDGE = 1.0  # pixels around a part, which separate it from what is behind
HINGE = 2.2  # greatest radius of a hinge in pixels
TENDON = 0.8  # half of the thickness of a tendon in pixels
LEAST_GOAL, LEAST_PART = 4.0, 1.5  # least radius in pixels
# Which parts cover others: what is fixed, goals, other things, then the robot from far to near.
FIXED, GOALS, THINGS, FAR, TORSO, NEAR = range(6)
COLOURS: dict[int, Colour] = {
    FIXED: GROUND,
    GOALS: GOAL,
    THINGS: BODY_DARK,
    FAR: FAR_LIMB,
    TORSO: BODY,
    NEAR: LIMB,
}
ALL, ROBOT, MOVING = range(6), (FAR, TORSO, NEAR), (GOALS, THINGS, FAR, TORSO, NEAR)


@final
class Figure:
    """Draws the parts of one model as a camera sees them.

    Args:
        planar: the model.
        camera: the camera.
    """

    def __init__(self, planar: PlanarModel, camera: Camera) -> None:
        self._camera, model = camera, planar.model
        limbs = _limb_layers(planar)
        layers = [GOALS if part.goal else _layer(planar, part.body, limbs) for part in planar.parts]
        bodies = [int(model.jnt_bodyid[joint]) for joint in planar.hinges]
        self._parts = [
            (number, layer, _wider(layer, planar.parts[number].outline, camera.scale))
            for number, layer in sorted(enumerate(layers), key=lambda part: part[1])
        ]
        self._hinges = [
            (number, _layer(planar, body, limbs), _hinge_radius(planar, body, camera.scale))
            for number, body in enumerate(bodies)
        ]
        self._robot = [number for number, layer in enumerate(layers) if layer in ROBOT]

    def highest(self, outlines: Float[np.ndarray, "P 32 2"]) -> float:
        """Return the height of the robot's highest point."""
        return float(outlines[self._robot, :, 1].max(initial=-np.inf))

    def polygons(
        self,
        placed: Placed,
        outlines: Float[np.ndarray, "P 32 2"],
        aim: Float[np.ndarray, "2"],
        layers: Container[int] = ALL,
    ) -> list[Polygon]:
        """Return the polygons of some layers, those behind first.

        Args:
            placed: where everything is.
            outlines: the outlines of all parts.
            aim: the point in the middle of the picture.
            layers: the layers to draw.
        """
        shapes = self._camera.pixels(aim, outlines)
        normals = DIRECTIONS @ placed.turns.swapaxes(1, 2) * [1, -1]
        polygons: list[Polygon] = []
        if THINGS in layers:
            tendons = [self._camera.pixels(aim, tendon) for tendon in placed.tendons]
            polygons += [_line(a, b) for points in tendons for a, b in pairwise(points)]
        hinges = self._camera.pixels(aim, placed.hinges)
        for layer in filter(layers.__contains__, ALL):
            for number, of, wider in self._parts:
                if of != layer:
                    continue
                shape, normal = shapes[number], normals[number]
                if layer == GOALS:
                    shape = shape + _into_picture(shape.mean(0))
                elif layer != FIXED:
                    polygons.append(Polygon(shape + (wider + EDGE) * normal, BACKGROUND))
                polygons.append(Polygon(shape + wider * normal, COLOURS[layer]))
            colour = FAR_JOINT if layer == FAR else JOINT
            polygons += [
                Polygon(hinges[number] + radius * DIRECTIONS, colour)
                for number, of, radius in self._hinges
                if of == layer
            ]
        return polygons


def _wider(layer: int, outline: Float[np.ndarray, "32 2"], scale: float) -> float:
    """Return the pixels to add around a part, so that it can be seen."""
    least = LEAST_GOAL if layer == GOALS else LEAST_PART
    return max(0.0, least - scale * _radius(outline))


def _hinge_radius(planar: PlanarModel, body: int, scale: float) -> float:
    """Return the radius of a hinge's disc in pixels: smaller than the parts of its body."""
    radii = [_radius(part.outline) for part in planar.parts if part.body == body]
    return min(HINGE, 0.7 * max(scale * min(radii, default=0.0), LEAST_PART))


def _radius(outline: Float[np.ndarray, "32 2"]) -> float:
    """Return the least distance of an outline from its centre."""
    return float((outline * DIRECTIONS).sum(1).min())


def _into_picture(centre: Float[np.ndarray, "2"]) -> Float[np.ndarray, "2"]:
    """Return the shift that shows a point outside the picture at its border."""
    return centre.clip(LEAST_GOAL, SIZE - LEAST_GOAL) - centre


def _line(start: Float[np.ndarray, "2"], end: Float[np.ndarray, "2"]) -> Polygon:
    """Return a tendon between two points in pixels."""
    along = (end - start) / max(float(np.linalg.norm(end - start)), 1e-9)
    across = TENDON * np.array([-along[1], along[0]])
    return Polygon(np.stack([start - across, end - across, end + across, start + across]), JOINT)


def _layer(planar: PlanarModel, body: int, limbs: Mapping[int, int]) -> int:
    """Return the layer of a body."""
    welded = planar.model.body_weldid
    if not welded[body]:
        return FIXED
    if not is_below(planar.model, body, planar.robot):
        return THINGS
    return TORSO if welded[body] == welded[planar.robot] else limbs[_limb(planar, body)]


def _limb_layers(planar: PlanarModel) -> dict[int, int]:
    """Return the layers of the robot's limbs, by their first bodies.

    From near to far they alternate, so that two legs differ. Of limbs at the same depth, the one
    that the model has first is the nearer one.
    """
    model, robot = planar.model, planar.robot
    below = [body for body in range(robot, model.nbody) if is_below(model, body, robot)]
    torso = model.body_weldid[robot]
    limbs = {_limb(planar, body) for body in below if model.body_weldid[body] != torso}
    order = sorted(limbs, key=lambda body: (-round(planar.depth(body), 6), body))
    return {body: NEAR if rank % 2 == 0 else FAR for rank, body in enumerate(order)}


def _limb(planar: PlanarModel, body: int) -> int:
    """Return the first body of the limb that a body belongs to."""
    model = planar.model
    torso = model.body_weldid[planar.robot]
    while model.body_weldid[model.body_parentid[body]] != torso:
        body = int(model.body_parentid[body])
    return body
