"""Settings as values of a sweep: as text, resolved for an environment, and off."""

from collections.abc import Mapping
from typing import Any

from backflip.algorithms.entry import AlgorithmEntry
from backflip.core.settings import LARGEST, Setting
from backflip.core.spec import EnvSpec
from backflip.training.algorithm_config import check_against, configure
from runshelf.errors import UsageError
from runshelf.sweeps.space import Value

BUDGET = ("env_steps",)  # what a run may spend is not part of a study
# Settings of which a value means "off", where false does not say it.
_OFF = {
    **dict.fromkeys(("advantage_floor", "value_clip_range", "noise_color", "whole_share"), 0.0),
    **dict.fromkeys(("entropy_coef", "entropy_coef_end", "episode_steps"), 0),
    "n_step": 1,
}
_SCHEDULE_END = "_end"  # off: the value at the start stays


def defaults_of(entry: AlgorithmEntry, spec: EnvSpec) -> dict[str, Any]:
    """Return every setting of an algorithm as `train` would choose it for an environment."""
    own = {name: setting.default for name, setting in entry.settings.items()}
    return {**own, **entry.defaults_for(spec, {})}


def as_value(setting: Any) -> Value:
    """Return a setting as a value of a sweep; a tuple as `--set` takes it."""
    if isinstance(setting, tuple | list):
        return ",".join(map(str, setting)) or "none"
    return setting


def off_value(name: str, settings: Mapping[str, Any]) -> Any:
    """Return the value that switches a setting off; None if it is off, or cannot be."""
    value = settings[name]
    start = name.removesuffix(_SCHEDULE_END)
    if value is True:
        return False
    if name in _OFF:
        return type(value)(_OFF[name]) if value != _OFF[name] else None
    if name.endswith(_SCHEDULE_END) and start in settings and value != settings[start]:
        return settings[start]
    return None


def problem_of(entry: AlgorithmEntry, spec: EnvSpec, settings: Mapping[str, Any]) -> str:
    """Return why an algorithm cannot have these settings together; empty if it can."""
    try:
        check_against(configure(entry, settings), spec)
    except UsageError as error:
        return str(error)
    return ""


def nearby_values(setting: Setting, defaults: Mapping[str, Any]) -> list[Any]:
    """Return values on both sides of a default, within the bounds of the setting.

    A number above 0 is divided and multiplied by 3 and 10. A count is divided and multiplied by 2
    and 8: a power of two stays one, so that batches still divide. A share near 1 (a discount, a
    decay) moves its distance from 1. The end of a schedule goes to 0, a tenth of the start, and
    the start. A number that is 0 gets small values, a logarithm -1 and 1.

    Args:
        setting: what is moved.
        defaults: the default of every setting of the algorithm.
    """
    default = defaults[setting.name]
    if setting.kind is bool:
        return [not default]
    if setting.choices or setting.kind is str:
        return []
    if setting.kind is tuple:
        if not default:
            return [(16,)]  # no hidden layer; one is the nearest
        return [tuple(max(width // 4, 1) for width in default), tuple(4 * w for w in default)]
    found = [setting.kind(float(f"{x:.4g}")) for x in _nearby_numbers(setting, defaults)]
    return [x for x in dict.fromkeys(found) if x != default and setting.problem(x) is None]


def _nearby_numbers(setting: Setting, defaults: Mapping[str, Any]) -> list[float]:
    default, bounds = defaults[setting.name], setting.bounds
    start = setting.name.removesuffix(_SCHEDULE_END)
    if start != setting.name and defaults.get(start):
        return [0.0, 0.1 * defaults[start], defaults[start]]
    if default == 0 and bounds is not None and -LARGEST < bounds.low < 0:
        return [-1.0, 1.0]  # a logarithm
    if default == 0:
        return [1, 8] if setting.kind is int else [0.01, 0.1]
    if setting.kind is int:
        return [default * factor for factor in (1 / 8, 1 / 2, 2, 8)]
    if bounds is not None and bounds.high == 1:
        return [1 - (1 - default) * factor for factor in (10.0, 3.0, 1 / 3, 0.1)]
    return [default * factor for factor in (0.1, 1 / 3, 3.0, 10.0)]
