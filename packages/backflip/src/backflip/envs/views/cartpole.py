"""View of CartPole: a cart on its track between the limits where the episode ends."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.views.canvas import (
    BODY,
    BODY_DARK,
    FAINT,
    GROUND,
    JOINT,
    LIMB,
    LIMIT,
    Canvas,
    along,
)
from backflip.envs.views.view import mix, with_last

# Copied from `backflip.envs.native.cartpole`, which imports JAX; a test compares them.
SECONDS = 0.02  # one env step
MAX_POSITION = 2.4  # m from the middle of the track
POLE = 1.0  # m
ORIGIN, SCALE = (160, 150), 58  # middle of the track at the hinge's height; pixels per metre
CART = (0.36, 0.13)  # half width and half height, in m
WHEEL = 0.1  # radius, in m


@dataclass(frozen=True)
class CartPoleView:
    """Poses are the cart's position and the pole's angle from upright (m, rad)."""

    pixelated: bool = False

    def step_seconds(self) -> float:
        """Return the duration of an env step."""
        return SECONDS

    def poses(
        self,
        obs: Float[np.ndarray, "n 4"],
        next_obs: Float[np.ndarray, "n 4"],
        scene: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "n+1 2"]:
        """Return position and angle from the observations, including the last next one."""
        del scene
        return with_last(obs, next_obs)[:, [0, 2]].astype(np.float64)

    def between(
        self,
        before: Float[np.ndarray, "F 2"],
        after: Float[np.ndarray, "F 2"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F 2"]:
        """Return linear interpolations; the angle stays small."""
        return mix(before, after, share)

    def draw(self, poses: Float[np.ndarray, "F 2"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose."""
        return np.stack([_frame(float(x), float(angle)) for x, angle in poses])


def _frame(x: float, angle: float) -> UInt8[np.ndarray, "H W 3"]:
    canvas = _track().copy()
    half, depth = CART
    for side in (-0.6, 0.6):
        canvas.disc((x + side * half, -depth - WHEEL / 2), WHEEL * SCALE, BODY_DARK)
    canvas.polygon(
        [(x - half, depth), (x + half, depth), (x + half, -depth), (x - half, -depth)], BODY
    )
    canvas.line([(x, 0), along((x, 0), angle, POLE)], LIMB, 7)
    canvas.disc((x, 0), 3, JOINT)
    return canvas.finished()


@cache
def _track() -> Canvas:
    """Return the track with a mark at its middle and posts at its limits."""
    canvas = Canvas(ORIGIN, SCALE)
    rail = -CART[1] - 1.5 * WHEEL
    canvas.line([(0, rail), (0, rail - 0.14)], FAINT, 2)
    canvas.line([(-3, rail), (3, rail)], GROUND, 2)
    for limit in (-MAX_POSITION, MAX_POSITION):
        canvas.line([(limit, rail - 0.14), (limit, rail + 0.3)], LIMIT, 3)
    return canvas
