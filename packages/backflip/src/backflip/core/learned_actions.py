"""The way from an environment's own actions to those that algorithms learn from.

It is the reverse of `backflip.core.spaces.taken`.
"""

from typing import Any

import numpy as np

from backflip.core.spaces import Box, Discrete, InvalidValue, Space, flattened, sizes_of

NAME = "`action`"


def learned_actions(space: Space, action: Any, learned: Box | Discrete) -> tuple[np.ndarray, bool]:
    """Return own actions as a batch of learned actions, and whether there was only one.

    Args:
        space: the environment's own action space.
        action: an element of it, or a batch of them.
        learned: the space of the actions that an algorithm chooses.

    Raises:
        InvalidValue: the action is not in its space; the message says which part.
    """
    if isinstance(learned, Box):
        vectors, single = flattened(space, action, NAME)
        return vectors.reshape(-1, *learned.shape).astype(learned.dtype, copy=False), single
    if isinstance(space, Discrete):
        return _choice(space, action)
    one_hot, single = flattened(space, action, NAME)
    sizes = sizes_of(space)
    parts = np.split(one_hot, np.cumsum(sizes)[:-1], axis=1)
    places = tuple(part.argmax(1) for part in parts)
    return np.asarray(np.ravel_multi_index(places, sizes), np.int32), single


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
