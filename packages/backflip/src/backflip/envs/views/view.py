"""What a view is: how one kind of environment looks to a person.

A clip becomes poses, one for each moment between env steps: the few numbers that a picture needs.
Pictures of moments in between are drawn from poses in between. `backflip.envs.views.film` does
the rest.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped, UInt8

# Seconds that an env step of an environment nobody told us about is taken to last.
UNKNOWN_SECONDS = 1 / 15
WIDTH, HEIGHT = 320, 240  # of a frame, in pixels, where the environment has no size of its own


@runtime_checkable
class View(Protocol):
    """How an environment looks."""

    def step_seconds(self) -> float:
        """Return how long an env step lasts in the environment's own time.

        A method, for a view may have to start a simulator to know it, and `isinstance` asks every
        property.
        """
        ...

    @property
    def interpolates(self) -> bool:
        """Whether there are pictures between two env steps; else each is shown until the next."""
        ...

    @property
    def pixelated(self) -> bool:
        """Whether frames are to be enlarged without smoothing."""
        ...

    def poses(
        self,
        obs: Shaped[np.ndarray, "n ..."],
        next_obs: Shaped[np.ndarray, "n ..."],
        scene: Float[np.ndarray, "..."],
    ) -> Shaped[np.ndarray, "K ..."]:
        """Return what to draw before each of n lived env steps and, if it is known, after the last.

        Args:
            obs: the newest frame of what was seen before each env step.
            next_obs: the newest frame of what followed.
            scene: (n, S) what the environment recorded for pictures, or (0,).

        Returns:
            K poses, n or n + 1.
        """
        ...

    def between(
        self,
        before: Shaped[np.ndarray, "F ..."],
        after: Shaped[np.ndarray, "F ..."],
        share: Float[np.ndarray, " F"],
    ) -> Shaped[np.ndarray, "F ..."]:
        """Return the poses at a share in [0, 1) of an env step from `before` to `after`."""
        ...

    def draw(self, poses: Shaped[np.ndarray, "F ..."]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one colour frame for each pose."""
        ...


@runtime_checkable
class NeedsScene(Protocol):
    """A view that can draw nothing from observations alone."""

    @property
    def fallback(self) -> View:
        """What to show of clips that were recorded without scenes."""
        ...


def mix(
    before: Float[np.ndarray, "F P"],
    after: Float[np.ndarray, "F P"],
    share: Float[np.ndarray, " F"],
) -> Float[np.ndarray, "F P"]:
    """Return before + share (after - before)."""
    return before + share[:, None] * (after - before)


def shortest_turn(angle: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return a difference of angles, in radians, as the turn in [-π, π) that leads as far."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def with_last(
    obs: Shaped[np.ndarray, "n ..."], next_obs: Shaped[np.ndarray, "n ..."]
) -> Shaped[np.ndarray, "n+1 ..."]:
    """Return the observations of n env steps and the one that followed the last."""
    return np.concatenate([obs, next_obs[-1:]])
