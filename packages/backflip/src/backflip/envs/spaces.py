"""Gymnasium's spaces: which are supported, and what an algorithm learns from in their place."""

from typing import Any

import numpy as np
from gymnasium import spaces

from backflip.core.spaces import Box, Discrete, Group, MultiDiscrete, Space, leaves, sizes_of, width
from backflip.core.spec import LARGEST_BOUND, LARGEST_DISCRETE, OwnSpaces, has_room
from runshelf.errors import UsageError

SMALLEST_PICTURE = 16  # images with fewer pixels per side than channels are not expected
LARGEST_GRID = 16  # sides of an array of bytes that is flattened as part of a group
LARGEST_COMBINED = 4_096  # combinations of several choices: 2^12
DISCRETE = f"Discrete of at most {LARGEST_DISCRETE:,}"
FLOATS = f"Box of at least one float between bounds of at most {LARGEST_BOUND:g}, low below high"


def own_spaces(
    env_id: str, observation: "spaces.Space[Any]", action: "spaces.Space[Any]"
) -> OwnSpaces:
    """Return an environment's spaces in our types.

    Raises:
        UsageError: a space is not supported.
    """
    return OwnSpaces(_own_observation(env_id, observation), _own_action(env_id, action))


def learned_observation(own: Space) -> Box:
    """Return the space of the arrays that an algorithm gets: an image or a float32 vector."""
    if isinstance(own, Box) and _is_image(own):
        return _reshaped(own, (*own.shape, 1)[:3], np.dtype(np.uint8))
    parts = [_bounds(leaf) for _, leaf in leaves(own, "")]
    low, high = (np.concatenate(bounds) for bounds in zip(*parts, strict=True))
    return Box(low, high, np.dtype(np.float32))


def learned_action(own: Space) -> Box | Discrete:
    """Return the space of the actions that an algorithm chooses: one choice, or one vector."""
    sizes = sizes_of(own)
    if sizes:
        return Discrete(int(np.prod(sizes)))
    parts = [_bounds(leaf) for _, leaf in leaves(own, "")]
    low, high = (np.concatenate(bounds) for bounds in zip(*parts, strict=True))
    return Box(low, high, np.dtype(np.float32))


def _own_observation(env_id: str, space: "spaces.Space[Any]") -> Space:
    own = _converted(space)
    if isinstance(own, Discrete) and own.n > LARGEST_DISCRETE:
        raise _unsupported(env_id, "observation", space, f"Box and {DISCRETE}")
    if own is None:
        wrong = "" if not _has_parts(space) else f"; {_unsupported_parts(space)}"
        supported = "Box, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these"
        raise _unsupported(env_id, "observation", space, f"{supported}{wrong}")
    if isinstance(own, Box):
        _check_array(env_id, space, own)
    else:
        _check_parts(env_id, space, own)
    return own


def _check_array(env_id: str, space: "spaces.Space[Any]", own: Box) -> None:
    if 0 in own.shape:
        raise _unsupported(env_id, "observation", space, "Box of at least one number")
    if _is_image(own) and _channels_come_first(own.shape):
        raise UsageError(
            f"environment `{env_id}` has images of shape {own.shape}, channels first, but "
            "channels must come last; wrap it in gymnasium.wrappers.TransformObservation with "
            "`numpy.moveaxis(image, 0, -1)`"
        )


def _check_parts(env_id: str, space: "spaces.Space[Any]", own: Space) -> None:
    """Refuse a space of several parts that is empty, too large, or contains an image."""
    for name, leaf in leaves(own, ""):
        if isinstance(leaf, Box) and _is_image(leaf) and min(leaf.shape[:2]) > LARGEST_GRID:
            raise UsageError(
                f"environment `{env_id}` observes a group of spaces with an image, {name} of shape "
                f"{leaf.shape}, which cannot be flattened into a useful vector; name a function "
                "that wraps it, `module:function`, and keep the image with "
                f"gymnasium.wrappers.TransformObservation(env, lambda obs: obs{name}, "
                f"env.observation_space{name}), or everything else with "
                "gymnasium.wrappers.FilterObservation"
            )
    if not 1 <= width(own) <= LARGEST_DISCRETE:
        raise _unsupported(
            env_id, "observation", space, f"1 to {LARGEST_DISCRETE:,} numbers when flattened"
        )


def _own_action(env_id: str, space: "spaces.Space[Any]") -> Space:
    own = _converted(space, binary_is_choice=True)
    if isinstance(own, Discrete) and own.n <= LARGEST_DISCRETE:
        return own
    if isinstance(own, MultiDiscrete | Group):
        _check_combined(env_id, space, own)
        return own
    if isinstance(own, Box) and _has_room(own):
        return own
    raise _unsupported(env_id, "action", space, f"{DISCRETE}, MultiDiscrete, and {FLOATS}")


def _check_combined(env_id: str, space: "spaces.Space[Any]", own: Space) -> None:
    """Refuse several choices with too many combinations, and groups of unlike parts."""
    sizes, boxes = sizes_of(own), [leaf for _, leaf in leaves(own, "")]
    if not boxes or not (sizes or all(isinstance(leaf, Box) and _has_room(leaf) for leaf in boxes)):
        supported = f"groups of choices only, or of {FLOATS} only"
        raise _unsupported(env_id, "action", space, supported)
    count = np.prod([float(size) for size in sizes])
    if sizes and not 1 <= count <= LARGEST_COMBINED:
        raise UsageError(
            f"environment `{env_id}` has the action space {in_short(space)} with {count:,.0f} "
            f"combinations, which are learned as one choice; at most {LARGEST_COMBINED:,} are "
            "supported; name a function `module:function` that wraps the environment in "
            "gymnasium.wrappers.TransformAction with fewer choices"
        )


def _converted(space: "spaces.Space[Any]", *, binary_is_choice: bool = False) -> Space | None:
    """Return a space in our type; None if it has none."""
    if isinstance(space, spaces.Box):
        return Box(space.low, space.high, space.dtype)
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n), int(space.start), np.dtype(space.dtype))
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(np.asarray(space.start, np.int64), space.nvec.shape)
        return MultiDiscrete(space.nvec.astype(np.int64), start, space.dtype)
    if isinstance(space, spaces.MultiBinary):
        zeros = np.zeros(space.shape, space.dtype)
        if binary_is_choice:
            return MultiDiscrete(zeros.astype(np.int64) + 2, zeros.astype(np.int64), zeros.dtype)
        return Box(zeros, np.ones_like(zeros), zeros.dtype)
    if not _has_parts(space):
        return None
    parts = {
        name: _converted(part, binary_is_choice=binary_is_choice) for name, part in _parts(space)
    }
    known = {name: part for name, part in parts.items() if part is not None}
    return Group(known, isinstance(space, spaces.Dict)) if len(known) == len(parts) else None


def _has_parts(space: "spaces.Space[Any]") -> bool:
    return isinstance(space, spaces.Dict | spaces.Tuple)


def _parts(space: Any) -> list[tuple[str, Any]]:
    parts = space.spaces
    named = parts.items() if isinstance(space, spaces.Dict) else enumerate(parts)
    return [(str(name), part) for name, part in named]


def _unsupported_parts(space: "spaces.Space[Any]") -> str:
    """Return which parts of a group are not supported, in words."""
    wrong = [
        f"`{name}` is {in_short(part)}" for name, part in _parts(space) if not _converted(part)
    ]
    return f"{', '.join(wrong)}; leave it out with gymnasium.wrappers.FilterObservation"


def _bounds(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high of a flattened array or choice."""
    if isinstance(space, Box):
        box = _reshaped(space, (-1,), np.dtype(np.float32))
        return box.low, box.high
    ones = np.ones(width(space), np.float32)
    return np.zeros_like(ones), ones


def _reshaped(box: Box, shape: tuple[int, ...], dtype: np.dtype) -> Box:
    with np.errstate(over="ignore"):  # the largest float64 often stands for "no bound"
        low, high = box.low.astype(dtype).reshape(shape), box.high.astype(dtype).reshape(shape)
    return Box(low, high, dtype)


def _has_room(box: Box) -> bool:
    flat = _reshaped(box, (-1,), np.dtype(np.float32))
    return box.dtype.kind == "f" and has_room(flat.low, flat.high)


def _is_image(box: Box) -> bool:
    return box.dtype == np.uint8 and len(box.shape) in (2, 3)


def _channels_come_first(shape: tuple[int, ...]) -> bool:
    """Return whether an image's shape has the channels on the first axis.

    A stack of frames has a dozen or more channels, but fewer than pixels along either side.
    """
    return len(shape) == 3 and max(shape[0], SMALLEST_PICTURE - 1) < min(shape[1:])


def _unsupported(env_id: str, role: str, space: "spaces.Space[Any]", supported: str) -> UsageError:
    return UsageError(
        f"environment `{env_id}` has the {role} space {in_short(space)}, which is not supported; "
        f"supported: {supported}; wrap the environment"
    )


def in_short(value: Any) -> str:
    """Return a value as one line of at most 120 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:119]}…"
