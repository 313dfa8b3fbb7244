"""An `EnvSpec` as JSON, saved with a policy."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from backflip.core.spec import Box, Discrete, EnvSpec, OwnSpaces


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
    action = facts["action"]
    return EnvSpec(
        facts["id"],
        seen,
        Discrete(action["n"]) if "n" in action else _box(action["low"], action["high"]),
        facts["max_episode_steps"],
        facts["frame_stack"],
        own=_own_from_json(facts["own"]) if "own" in facts else None,
    )


def _own_to_json(own: OwnSpaces) -> dict[str, Any]:
    """Return the environment's own spaces, without the bounds of observations."""
    seen, taken = own.observation, own.action
    return {
        "observation": asdict(seen)
        if isinstance(seen, Discrete)
        else {"shape": seen.shape, "dtype": seen.dtype.name},
        "action": asdict(taken)
        if isinstance(taken, Discrete)
        else {"low": taken.low, "high": taken.high, "dtype": taken.dtype.name},
    }


def _own_from_json(facts: Mapping[str, Any]) -> OwnSpaces:
    seen, taken = facts["observation"], facts["action"]
    return OwnSpaces(
        Discrete(**seen) if "n" in seen else _boundless(seen["shape"], seen["dtype"]),
        Discrete(**taken) if "n" in taken else _box(**taken),
    )


def _boundless(shape: Sequence[int], dtype: str) -> Box:
    zeros = np.zeros(shape, dtype)
    return Box(zeros, zeros, zeros.dtype)


def _box(low: Any, high: Any, dtype: str = "float32") -> Box:
    kind = np.dtype(dtype)
    return Box(np.asarray(low, kind), np.asarray(high, kind), kind)
