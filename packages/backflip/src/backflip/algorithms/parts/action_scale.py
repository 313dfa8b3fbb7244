"""Bounded continuous actions, scaled to [-1, 1] for policies and critics.

u = (a - c) / h in [-1, 1],   c = (low + high) / 2,   h = (high - low) / 2
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from backflip.algorithms.parts.invalid_rows import blank
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from runshelf.errors import UsageError


class ActionScale(NamedTuple):
    """Center and half-width of an action space.

    Attributes:
        center: c, (A,).
        half: h, (A,), above 0.
    """

    center: np.ndarray
    half: np.ndarray

    @property
    def dimensions(self) -> int:
        """A, the dimensions of an action."""
        return self.center.shape[0]


def action_scale(algorithm: str, spec: EnvSpec) -> ActionScale:
    """Return center and half-width of an environment's action space.

    Raises:
        UsageError: actions are discrete or have no bounds, or observations are images.
    """
    box = spec.action
    if isinstance(box, Discrete):
        raise UsageError(
            f"`{algorithm}` chooses continuous actions, and those of `{spec.id}` are discrete"
        )
    if spec.is_image:
        raise UsageError(
            f"`{algorithm}` with continuous actions learns from vectors, and observations of "
            f"`{spec.id}` are images"
        )
    low, high = (np.asarray(bound, np.float32) for bound in (box.low, box.high))
    with np.errstate(over="ignore", invalid="ignore"):
        half = (high - low) / 2
    if not (np.isfinite(half) & (low < high)).all():
        raise UsageError(
            f"`{algorithm}` needs an action space with finite bounds, low below high, and that of "
            f"`{spec.id}` has low {low.tolist()}, high {high.tolist()}; wrap the environment in "
            "gymnasium.wrappers.RescaleAction, or use ppo, a2c or vpg"
        )
    return ActionScale(low + half, half)


def to_env(scale: ActionScale, unit: Float[Array, "N A"]) -> Float[Array, "N A"]:
    """Return actions in the environment's units: c + h u."""
    return unit * scale.half[None] + scale.center[None]


def rows_in_units(scale: ActionScale, batch: Transition) -> Transition:
    """Return a batch (axes U, B) with actions in [-1, 1], and zeros in invalid rows."""
    batch = jax.tree.map(partial(blank, valid=batch.valid), batch)
    action: Any = (batch.action - scale.center[None, None]) / scale.half[None, None]
    return batch._replace(action=action)
