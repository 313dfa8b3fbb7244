"""A replay in a checkpoint: only the rows that hold something, which at first are few."""

from collections.abc import Mapping

import numpy as np

PREFIX = "learners.replay."
FILLED = f"{PREFIX}filled"
WHOLE = {FILLED, f"{PREFIX}position", f"{PREFIX}tree", f"{PREFIX}draws"}


def trimmed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint without the rows of replays that are still empty.

    Rows are the first axis, or the second after that of seeds, each with a replay of its own.
    """
    if FILLED not in arrays:
        return dict(arrays)
    filled = arrays[FILLED]
    rows = (*[slice(None)] * filled.ndim, slice(int(filled.max())))
    return {name: array[rows] if _has_rows(name) else array for name, array in arrays.items()}


def whole(
    arrays: Mapping[str, np.ndarray], like: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return what `trimmed` was given, to be written on; the empty rows are those of `like`."""
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
        return np.array(array)  # a file's arrays cannot be written on
    full = np.zeros_like(like)
    full[(*[slice(None)] * axis, slice(array.shape[axis]))] = array
    return full
