"""Outlines of MuJoCo's shapes, seen along a line of sight."""

from typing import Any

import numpy as np
from jaxtyping import Float

COUNT = 32  # points of an outline
ENDLESS = 100.0  # half of the side of a plane without a size, in metres
# MuJoCo's mjtGeom.
PLANE, HEIGHT_FIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
KNOWN = {PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH}

_ANGLES = 2 * np.pi * np.arange(COUNT) / COUNT
# The outward normal of each point of an outline.
DIRECTIONS: Float[np.ndarray, "32 2"] = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], 1)


def outline(
    kind: int,
    size: Float[np.ndarray, "3"],
    axes: Float[np.ndarray, "2 3"],
    vertices: Float[np.ndarray, "V 3"],
) -> Float[np.ndarray, "32 2"]:
    """Return the convex outline of a shape around its centre.

    For each direction d in the picture, the point is s(Aᵀ d) projected by A, where s(l) is the
    point of the shape that is furthest in the direction l.

    Args:
        kind: MuJoCo's type of the shape, one of `KNOWN`.
        size: its three sizes as in MuJoCo.
        axes: A, the picture's axes to the right and up, in the shape's own frame.
        vertices: the vertices of a mesh; of other shapes it is not read.
    """
    return _furthest(kind, size, DIRECTIONS @ axes, vertices) @ axes.T


def vertices_of(model: Any, geom: int) -> Float[np.ndarray, "V 3"]:
    """Return the vertices of a geom's mesh; none if it is not a mesh."""
    mesh = int(model.geom_dataid[geom])
    if int(model.geom_type[geom]) != MESH:
        return np.zeros((0, 3))
    start = int(model.mesh_vertadr[mesh])
    return model.mesh_vert[start : start + int(model.mesh_vertnum[mesh])].astype(np.float64)


def _furthest(
    kind: int,
    size: Float[np.ndarray, "3"],
    towards: Float[np.ndarray, "32 3"],
    vertices: Float[np.ndarray, "V 3"],
) -> Float[np.ndarray, "32 3"]:
    """Return the points of a shape that are furthest in the given directions of length 1."""
    radius, half = float(size[0]), float(size[1])
    along = np.sign(towards) * [0, 0, 1]
    if kind == SPHERE:
        return radius * towards
    if kind == CAPSULE:
        return radius * towards + half * along
    if kind == ELLIPSOID:
        return size**2 * towards / np.linalg.norm(size * towards, axis=1, keepdims=True)
    if kind == CYLINDER:
        across = towards * [1, 1, 0]
        return radius * across / np.maximum(_length(across), 1e-12) + half * along
    if kind == MESH:
        return vertices[np.argmax(towards @ vertices.T, axis=1)]
    sides = size if kind == BOX else np.where(size > 0, size, ENDLESS) * [1, 1, 0]
    return sides * np.sign(towards)


def _length(vectors: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 1"]:
    return np.linalg.norm(vectors, axis=1, keepdims=True)
