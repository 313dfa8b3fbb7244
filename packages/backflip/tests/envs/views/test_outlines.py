"""Outlines contain the projections of all points of a shape, and nothing more."""

import numpy as np
import pytest
from jaxtyping import Float

from backflip.envs.views.outlines import (
    BOX,
    CAPSULE,
    CYLINDER,
    DIRECTIONS,
    ELLIPSOID,
    MESH,
    PLANE,
    SPHERE,
    outline,
)

SIZE = np.array([0.3, 0.5, 0.2])
NONE = np.zeros((0, 3))
SIDE = np.eye(3)[[0, 2]]  # the shape's axis points up
ABOVE = np.eye(3)[[0, 1]]  # it points to the person


def points_on(kind: int) -> Float[np.ndarray, "n 3"]:
    """Return many points of a shape's surface, from its definition."""
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 180), np.linspace(-1, 1, 101))
    u, v = u.ravel(), v.ravel()
    flat = np.sqrt(1 - v**2)
    ball = np.stack([flat * np.cos(u), flat * np.sin(u), v], 1)
    radius, half, _ = SIZE
    ends = np.array([[0, 0, half], [0, 0, -half]])
    if kind == SPHERE:
        return radius * ball
    if kind == CAPSULE:
        return np.concatenate([radius * ball + end for end in ends])
    if kind == ELLIPSOID:
        return SIZE * ball
    ring = np.stack([np.cos(u), np.sin(u), 0 * u], 1)
    if kind == CYLINDER:
        return np.concatenate([radius * ring + end for end in ends])
    corners = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    return SIZE * corners * ([1, 1, 0] if kind == PLANE else 1)


def rotations() -> list[Float[np.ndarray, "3 3"]]:
    rng = np.random.default_rng(0)
    return [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(5)]


@pytest.mark.medium
@pytest.mark.parametrize("kind", [SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, PLANE])
def test_reaches_as_far_as_the_shape_in_every_direction(kind: int) -> None:
    for rotation in rotations():
        axes = rotation[:2]
        reached = (outline(kind, SIZE, axes, NONE) * DIRECTIONS).sum(1)
        expected = (points_on(kind) @ axes.T @ DIRECTIONS.T).max(0)
        np.testing.assert_allclose(reached, expected, atol=2e-3)


def test_capsule_by_hand() -> None:
    """Radius .3, half length .5: .6 wide and 1.6 high from the side, a disc from its end."""
    side = outline(CAPSULE, SIZE, SIDE, NONE)
    np.testing.assert_allclose(side.max(0), [0.3, 0.8])
    np.testing.assert_allclose(side.min(0), [-0.3, -0.8])
    np.testing.assert_allclose(outline(CAPSULE, SIZE, ABOVE, NONE), 0.3 * DIRECTIONS, atol=1e-12)


def test_mesh_is_drawn_from_its_vertices() -> None:
    corners = points_on(BOX)
    for rotation in rotations():
        box = outline(BOX, SIZE, rotation[:2], NONE)
        np.testing.assert_allclose(outline(MESH, SIZE, rotation[:2], corners), box, atol=1e-12)
