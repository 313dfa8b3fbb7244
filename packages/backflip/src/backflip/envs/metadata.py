"""Facts that a Gymnasium environment states about itself: frames per second, names of numbers."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from backflip.envs.ids import HOST_PREFIX

NAMES = "observation_names"  # key of `metadata`
# A row of the table of observations in a docstring of Gymnasium: | 0 | Cart Position | ...
ROW = re.compile(r"^\s*\|\s*(\d+)\s*\|\s*([^|]+?)\s*\|", re.MULTILINE)
HEADING = re.compile(r"^\s*\|\s*Num\s*\|\s*Observation\s*\|", re.MULTILINE | re.IGNORECASE)


def render_fps(env_id: str) -> float | None:
    """Return the `render_fps` of an environment that is imported; None if it states none."""
    fps = _metadata(class_of(env_id)).get("render_fps")
    if isinstance(fps, bool) or not isinstance(fps, int | float) or not 0 < fps < math.inf:
        return None
    return float(fps)


def number_names(stated_by: Any, count: int) -> tuple[str, ...]:
    """Return the names of the `count` observed numbers that an environment or its class states.

    They are in `metadata["observation_names"]`, or in the docstring in a table as Gymnasium has it:
    columns `Num` and `Observation`, with a row for every number. Without both, there are no names.
    """
    stated = _metadata(stated_by).get(NAMES)
    if isinstance(stated, Sequence) and not isinstance(stated, str) and len(stated) == count:
        return tuple(" ".join(str(name).split()) for name in stated)
    text = stated_by.__doc__ or ""
    heading = HEADING.search(text)
    if heading is None:
        return ()
    table = text[heading.start() :].split("\n\n", 1)[0]
    rows = ROW.findall(table)
    complete = [int(number) for number, _ in rows] == list(range(count))
    return tuple(" ".join(name.split()) for _, name in rows) if complete else ()


def _metadata(env: Any) -> Mapping[str, Any]:
    found = getattr(env, "metadata", None)
    return found if isinstance(found, Mapping) else {}


def class_of(env_id: str) -> Any:
    """Return the class of an environment, or None if its module is not imported."""
    module, _, name = env_id.removeprefix(HOST_PREFIX).partition(":")
    if module in sys.modules and name.isidentifier():
        return getattr(sys.modules[module], name, None)
    import gymnasium  # noqa: PLC0415  (takes a second to import)

    spec = gymnasium.registry.get((name or module).rpartition(":")[2])
    entry_point: Any = None if spec is None else spec.entry_point
    if not isinstance(entry_point, str):
        return entry_point
    module, _, name = entry_point.partition(":")
    return getattr(sys.modules.get(module), name, None)
