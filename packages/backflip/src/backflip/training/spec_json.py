"""An `EnvSpec` as JSON, saved with a policy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from backflip.core import spaces
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec, OwnSpaces


def spec_to_json(spec: EnvSpec) -> dict[str, Any]:
    """Return the parts of a spec that acting needs, as JSON values."""
    action = spec.action
    if isinstance(action, Discrete):
        bounds = {"n": action.n}
    else:
        bounds = {"low": action.low, "high": action.high}
    box = spec.observation
    seen: dict[str, Any] = {"shape": box.shape, "dtype": box.dtype.name}
    if spec.is_pixels:  # networks divide by the largest possible value
        seen["high"] = int(box.high.max())
    facts = {
        "id": spec.id,
        "observation": seen,
        "action": bounds,
        "max_episode_steps": spec.max_episode_steps,
        "frame_stack": spec.frame_stack,
    }
    return facts if spec.own is None else facts | {"own": _own_to_json(spec.own)}


def spec_from_json(facts: Mapping[str, Any]) -> EnvSpec:
    """Return the spec that `spec_to_json` wrote, without the bounds of observations."""
    dtype, shape = np.dtype(facts["observation"]["dtype"]), tuple(facts["observation"]["shape"])
    low, high = -np.inf, np.inf
    if dtype == np.uint8:
        low, high = 0, facts["observation"].get("high", 255)
    seen = Box(np.full(shape, low, dtype), np.full(shape, high, dtype), dtype)
    return EnvSpec(
        facts["id"],
        seen,
        _action(spaces.from_json(facts["action"])),
        facts["max_episode_steps"],
        facts["frame_stack"],
        own=_own_from_json(facts["own"]) if "own" in facts else None,
    )


def _action(space: Any) -> Box | Discrete:
    assert isinstance(space, Box | Discrete)
    return space


def _own_to_json(own: OwnSpaces) -> dict[str, Any]:
    """Return the environment's own spaces, without the bounds of an observation's array."""
    seen = spaces.to_json_without_bounds(own.observation)
    return {"observation": seen, "action": spaces.to_json(own.action)}


def _own_from_json(facts: Mapping[str, Any]) -> OwnSpaces:
    return OwnSpaces(*(spaces.from_json(facts[role]) for role in ("observation", "action")))
