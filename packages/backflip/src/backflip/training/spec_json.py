"""An `EnvSpec` as JSON, saved with a policy."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from backflip.core import spaces
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec, OwnSpaces

MOST_NUMBERS = 2**26  # of all spaces of an environment
MOST_PARTS = 10_000
LARGEST = 2**31


def spec_to_json(spec: EnvSpec) -> dict[str, Any]:
    """Return the parts of a spec that acting needs, as JSON values."""
    action = spec.action
    if isinstance(action, Discrete):
        bounds = {"n": action.n}
    else:
        bounds = {"low": action.low, "high": action.high}
    box = spec.observation
    seen: dict[str, Any] = {"shape": box.shape, "dtype": box.dtype.name}
    if spec.is_image:  # networks divide by the largest possible value
        seen["high"] = int(box.high.max())
    facts: dict[str, Any] = {
        "id": spec.id,
        "observation": seen,
        "action": bounds,
        "max_episode_steps": spec.max_episode_steps,
        "frame_stack": spec.frame_stack,
    }
    if spec.angles:
        facts["angles"] = list(spec.angles)
    return facts if spec.own is None else facts | {"own": _own_to_json(spec.own)}


def spec_from_json(facts: Mapping[str, Any]) -> EnvSpec:
    """Return the spec that `spec_to_json` wrote, without the bounds of observations.

    Raises:
        ValueError: it has more numbers than an environment's, so that it would fill the memory.
        KeyError, TypeError: it is damaged.
    """
    _check_sizes(facts)
    dtype, shape = np.dtype(facts["observation"]["dtype"]), tuple(facts["observation"]["shape"])
    low, high = -np.inf, np.inf
    if dtype == np.uint8:
        low, high = 0, facts["observation"].get("high", 255)
    seen = Box(np.full(shape, low, dtype), np.full(shape, high, dtype), dtype)
    return EnvSpec(
        id=facts["id"],
        observation=seen,
        action=_action(spaces.from_json(facts["action"])),
        max_episode_steps=facts["max_episode_steps"],
        frame_stack=facts["frame_stack"],
        own=_own_from_json(facts["own"]) if "own" in facts else None,
        angles=_angles(facts.get("angles", []), shape),
    )


def _action(space: Any) -> Box | Discrete:
    if not isinstance(space, Box | Discrete):
        raise TypeError("an action space that is neither a box nor discrete")
    return space


def _check_sizes(facts: Mapping[str, Any]) -> None:
    """Refuse spaces that no environment has, before memory is taken for them.

    Raises:
        ValueError: there are too many numbers or parts, or a number is not what it should be.
    """
    own = facts.get("own") or {}
    spaces = [facts["observation"], facts["action"], *own.values()]
    parts = (size for space in spaces for size in _sizes(space))
    sizes = list(islice(parts, MOST_PARTS + 1))
    if len(sizes) > MOST_PARTS or sum(sizes) > MOST_NUMBERS:
        raise ValueError("an environment with too many numbers or parts")
    for name in ("max_episode_steps", "frame_stack"):
        if facts[name] is not None:
            _whole(facts[name])


def _sizes(space: Mapping[str, Any]) -> Iterator[int]:
    """Yield how many numbers each part of a space has."""
    for kind in ("dict", "tuple"):
        if kind in space:
            for part in space[kind].values():
                yield from _sizes(part)
            return
    if np.dtype(space.get("dtype", "int64")).kind not in "biuf":
        raise ValueError("numbers of an unknown kind")
    if "n" in space:
        yield _whole(space["n"])
    elif "sizes" in space:
        yield int(np.sum([_whole(size) for size in np.ravel(space["sizes"]).tolist()]))
    elif "shape" in space:
        yield math.prod(map(_whole, space["shape"]))
    else:
        yield np.size(space["low"])


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= LARGEST:
        raise ValueError(f"`{number!s:.40}` is not a whole number")
    return number


def _own_to_json(own: OwnSpaces) -> dict[str, Any]:
    """Return the environment's own spaces, without the bounds of an observation's array."""
    seen = spaces.to_json_without_bounds(own.observation)
    return {"observation": seen, "action": spaces.to_json(own.action)}


def _own_from_json(facts: Mapping[str, Any]) -> OwnSpaces:
    return OwnSpaces(*(spaces.from_json(facts[role]) for role in ("observation", "action")))


def _angles(indices: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the indices of observed angles.

    Raises:
        ValueError: one is not the index of an observed number.
    """
    found = tuple(int(index) for index in indices)
    if any(not 0 <= index < math.prod(shape) for index in found) or (found and len(shape) != 1):
        raise ValueError(f"angles {found} are not indices of observations of shape {shape}")
    return found
