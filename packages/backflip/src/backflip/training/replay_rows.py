"""Saves only the filled rows of a replay in a checkpoint."""

from collections.abc import Mapping

import numpy as np

PREFIX = "learners.replay."
FILLED = f"{PREFIX}filled"
WHOLE = {FILLED, f"{PREFIX}position", f"{PREFIX}tree", f"{PREFIX}draws"}


def trimmed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint without the empty rows of replays.

    Rows are the first axis, or the second if each seed has its own replay.
    """
    if FILLED not in arrays:
        return dict(arrays)
    filled = arrays[FILLED]
    rows = (*[slice(None)] * filled.ndim, slice(int(filled.max())))
    return {name: array[rows] if _has_rows(name) else array for name, array in arrays.items()}


def whole(
    arrays: Mapping[str, np.ndarray], like: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the arrays that `trimmed` was called with, writable; `like` has their shapes."""
    return {
        name: _filled_up(array, like.get(name, array), arrays[FILLED].ndim)
        if name.startswith(PREFIX)
        else array
        for name, array in arrays.items()
    }


def _has_rows(name: str) -> bool:
    return name.startswith(PREFIX) and name not in WHOLE


def _filled_up(array: np.ndarray, like: np.ndarray, axis: int) -> np.ndarray:
    if array.shape == like.shape or array.ndim != like.ndim:
        return np.array(array)  # arrays of a file are read-only
    full = np.zeros_like(like)
    full[(*[slice(None)] * axis, slice(array.shape[axis]))] = array
    return full
