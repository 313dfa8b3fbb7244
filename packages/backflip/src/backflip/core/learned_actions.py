"""The way from an environment's own actions to those that algorithms learn from.

It is the reverse of `backflip.core.spaces.taken`.
"""

from typing import Any

import numpy as np

from backflip.core.spaces import (
    Box,
    Discrete,
    Group,
    InvalidValue,
    Space,
    flattened,
    sizes_of,
    width,
)

NAME = "`action`"


def learned_actions(space: Space, action: Any, learned: Box | Discrete) -> tuple[np.ndarray, bool]:
    """Return own actions as a batch of learned actions, and whether there was only one.

    Args:
        space: the environment's own action space.
        action: an element of it, or a batch of them; of a group also flattened, as an array.
        learned: the space of the actions that an algorithm chooses.

    Raises:
        InvalidValue: the action is not in its space; the message says which part.
    """
    if isinstance(learned, Box):
        vectors, single = _flat(space, action)
        return vectors.reshape(-1, *learned.shape).astype(learned.dtype, copy=False), single
    if isinstance(space, Discrete):
        return _choice(space, action)
    one_hot, single = _flat(space, action)
    sizes = sizes_of(space)
    parts = np.split(one_hot, np.cumsum(sizes)[:-1], axis=1)
    if not all((np.sort(part, 1) == np.eye(part.shape[1])[-1]).all() for part in parts):
        raise InvalidValue(f"{NAME} must be one-hot: one 1 for each choice, and 0 for all others")
    places = tuple(part.argmax(1) for part in parts)
    return np.asarray(np.ravel_multi_index(places, sizes), np.int32), single


def _flat(space: Space, action: Any) -> tuple[np.ndarray, bool]:
    """Return actions as vectors (B, width), and whether there was only one."""
    if not (isinstance(space, Group) and isinstance(action, np.ndarray)):
        return flattened(space, action, NAME)
    if action.ndim != 2 or action.shape[1] != width(space):
        raise InvalidValue(f"{NAME} must have shape (B, {width(space)}), got {action.shape}")
    return action.astype(np.float32), False


def _choice(space: Discrete, action: Any) -> tuple[np.ndarray, bool]:
    """Return one choice, or a batch, counted from 0.

    A column (B, 1) is not one of the forms of a batch: it could also be one choice of several.
    """
    numbers = np.asarray(action)
    if numbers.ndim > 1 or numbers.dtype.kind not in "iu":
        got = f"shape {numbers.shape} of {numbers.dtype}"
        raise InvalidValue(f"{NAME} must be a whole number, or (B,) of them, got {got}")
    places = np.atleast_1d(numbers).astype(np.int64) - space.start
    outside = (places < 0) | (places >= space.n)
    if outside.any():
        found, last = np.atleast_1d(numbers)[int(outside.argmax())], space.start + space.n - 1
        raise InvalidValue(f"{NAME} must be a number from {space.start} to {last}, got {found}")
    return places.astype(np.int32), numbers.ndim == 0
