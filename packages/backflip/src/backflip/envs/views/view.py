"""The interface of views, which draw one kind of environment for a person.

A view first converts a clip to poses, one per env step: the numbers that a picture needs. Then it
draws poses, and, if it can, interpolated poses between env steps. `backflip.envs.views.film` makes
movies from these pictures.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped, UInt8

UNKNOWN_SECONDS = 1 / 15  # assumed duration of an env step if it is not known
WIDTH, HEIGHT = 320, 240  # frame size in pixels, unless the observation is an image


@runtime_checkable
class View(Protocol):
    """Draws one kind of environment."""

    def step_seconds(self) -> float:
        """Return the duration of an env step in the environment's own time.

        Not a property, because a view may start a simulator here, and `isinstance` reads every
        property.
        """
        ...

    @property
    def pixelated(self) -> bool:
        """Whether frames should be enlarged without smoothing."""
        ...

    def poses(
        self,
        obs: Shaped[np.ndarray, "n ..."],
        next_obs: Shaped[np.ndarray, "n ..."],
        scene: Shaped[np.ndarray, "..."],
    ) -> Shaped[np.ndarray, "K ..."]:
        """Return the poses before each of n env steps and, if known, the one after the last.

        Args:
            obs: the newest frame of the observation before each env step.
            next_obs: the newest frame of the next observation.
            scene: (n, S) or (n + 1, S), what the environment recorded for drawing, or (0,).

        Returns:
            K poses, K = n or n + 1.
        """
        ...

    def draw(self, poses: Shaped[np.ndarray, "F ..."]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one colour frame for each pose."""
        ...


@runtime_checkable
class Interpolates(Protocol):
    """A view that can draw moments between env steps. Other views repeat the last picture."""

    def between(
        self,
        before: Shaped[np.ndarray, "F ..."],
        after: Shaped[np.ndarray, "F ..."],
        share: Float[np.ndarray, " F"],
    ) -> Shaped[np.ndarray, "F ..."]:
        """Return the poses at a share in [0, 1) of the env step from `before` to `after`."""
        ...


@runtime_checkable
class NeedsScene(Protocol):
    """A view that cannot draw from observations alone."""

    @property
    def fallback(self) -> View:
        """The view for clips that were recorded without scenes."""
        ...

    def draws(self, scene: Shaped[np.ndarray, "..."]) -> bool:
        """Return whether the view can draw a recorded scene."""
        ...


def view_for(view: View, scene: Shaped[np.ndarray, "..."]) -> View:
    """Return the view that draws a clip: the fallback if its scene is missing."""
    return view.fallback if isinstance(view, NeedsScene) and not view.draws(scene) else view


def mix(
    before: Float[np.ndarray, "F P"],
    after: Float[np.ndarray, "F P"],
    share: Float[np.ndarray, " F"],
) -> Float[np.ndarray, "F P"]:
    """Return before + share (after - before)."""
    return before + share[:, None] * (after - before)


def shortest_turn(angle: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return an angle in radians modulo 2π, in [-π, π)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def with_last(
    obs: Shaped[np.ndarray, "n ..."], next_obs: Shaped[np.ndarray, "n ..."]
) -> Shaped[np.ndarray, "n+1 ..."]:
    """Return the observations of n env steps and the one after the last."""
    return np.concatenate([obs, next_obs[-1:]])
