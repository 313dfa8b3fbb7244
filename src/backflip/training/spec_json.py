"""What acting needs to know of an environment, as JSON: written with a policy, read with it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from backflip.core.spec import Box, Discrete, EnvSpec


def spec_to_json(spec: EnvSpec) -> dict[str, Any]:
    """Return what acting needs to know of an environment, as JSON values."""
    action = spec.action
    if isinstance(action, Discrete):
        bounds = {"n": action.n}
    else:
        bounds = {"low": action.low, "high": action.high}
    box = spec.observation
    seen: dict[str, Any] = {"shape": box.shape, "dtype": box.dtype.name}
    if spec.is_pixels:  # networks divide by the largest value there can be
        seen["high"] = int(box.high.max())
    return {
        "id": spec.id,
        "observation": seen,
        "action": bounds,
        "max_episode_steps": spec.max_episode_steps,
        "frame_stack": spec.frame_stack,
    }


def spec_from_json(facts: Mapping[str, Any]) -> EnvSpec:
    """Return the spec that `spec_to_json` wrote; the bounds of observations are not in it."""
    dtype, shape = np.dtype(facts["observation"]["dtype"]), tuple(facts["observation"]["shape"])
    low, high = -np.inf, np.inf
    if dtype == np.uint8:
        low, high = 0, facts["observation"].get("high", 255)
    seen = Box(np.full(shape, low, dtype), np.full(shape, high, dtype), dtype)
    action = facts["action"]
    return EnvSpec(
        facts["id"],
        seen,
        Discrete(action["n"]) if "n" in action else _box(action["low"], action["high"]),
        facts["max_episode_steps"],
        facts["frame_stack"],
    )


def _box(low: Any, high: Any) -> Box:
    kind = np.dtype(np.float32)
    return Box(np.asarray(low, kind), np.asarray(high, kind), kind)
