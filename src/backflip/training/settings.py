"""An algorithm's settings: from what a person named to their dataclass, checked."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from backflip.algorithms.interface import Settings
from backflip.core.errors import UsageError, did_you_mean
from backflip.core.spec import LARGEST_COUNT, EnvSpec
from backflip.training.bounds import out_of_bounds

WIDEST = 65_536  # of a hidden layer: two such need 16 GiB


def resolve(kind: type[Any], settings: Mapping[str, Any]) -> Settings:
    """Return settings as their dataclass, with numbers of the types its fields have.

    Raises:
        UsageError: unknown settings, or values that cannot be; all of them at once.
    """
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    choices = choices_of(kind)
    unknown = [f"`{name}`{did_you_mean(name, fields)}" for name in settings if name not in fields]
    if unknown:
        raise UsageError(f"unknown settings {'; '.join(unknown)} (known: {', '.join(fields)})")
    wrong = [
        f"`{name}` must be {_wanted(fields[name], choices.get(name))}, got {value!r}"
        for name, value in settings.items()
        if not _fits(value, fields[name], choices.get(name))
    ]
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")
    typed = {name: _like(fields[name], value) for name, value in settings.items()}
    config = kind(**typed)
    _check_sizes(config)
    return config


def choices_of(kind: type[Any]) -> dict[str, tuple[str, ...]]:
    """Return the texts that each field takes which takes one of several."""
    hints = typing.get_type_hints(kind)
    return {
        name: typing.get_args(hint)
        for name, hint in hints.items()
        if typing.get_origin(hint) is Literal
    }


def check_against(config: Settings, spec: EnvSpec) -> None:
    """Refuse settings that cannot work in an environment.

    Raises:
        UsageError: undiscounted values of episodes that never terminate would be infinite.
    """
    if getattr(config, "discount", 0.0) == 1.0 and not spec.terminates:
        raise UsageError(
            f"`discount` must be below 1 for `{spec.id}`, whose episodes only a time limit ends: "
            f"the value of going on for ever would be infinite; try --set discount=0.99"
        )


def _wanted(default: Any, choices: tuple[str, ...] | None) -> str:
    if choices:
        return " or ".join(choices)
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, tuple):
        return f"whole numbers, at least 1 and at most {WIDEST:,}, or none"
    return "a whole number" if isinstance(default, int) else "a finite number"


def _fits(value: Any, default: Any, choices: tuple[str, ...] | None) -> bool:
    if choices:
        return value in choices
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, tuple):
        return all(_is_size(part) for part in _parts(value))
    if isinstance(default, int):
        return isinstance(value, int | np.integer)
    return isinstance(value, int | float | np.number) and _is_finite(value)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= WIDEST


def _like(default: Any, value: Any) -> Any:
    if isinstance(default, tuple):
        return _parts(value)
    return type(default)(value)


def _parts(value: Any) -> tuple[Any, ...]:
    """Return a tuple's parts; on the command line hidden=64 has one, and hidden=none none."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return () if value == "none" else (value,)


def _check_sizes(config: Any) -> None:
    if wrong := out_of_bounds(config):
        raise UsageError(f"settings: {'; '.join(wrong)}")
    rows = config.num_envs * config.rollout_length
    minibatches = getattr(config, "minibatches", 1)
    if rows % minibatches:
        raise UsageError(
            f"`minibatches` must divide num_envs x rollout_length = {rows}, got {minibatches}; "
            f"try --set minibatches={math.gcd(rows, minibatches)}"
        )
    if hasattr(config, "minibatches") and rows < 2 * minibatches:
        raise UsageError(
            f"`minibatches` must leave at least 2 of num_envs x rollout_length = {rows} rows to "
            f"each, for the advantage of a single one is normalised to 0, got {minibatches}"
        )
    if rows > LARGEST_COUNT:
        fewer = "`episodes` or " if hasattr(config, "episodes") else ""
        raise UsageError(
            f"one rollout, {config.num_envs} environments x {config.rollout_length} = {rows}, must "
            f"be at most {LARGEST_COUNT:,} env steps; try a smaller {fewer}`num_envs`, or a "
            "smaller `rollout_length`"
        )
    if config.env_steps < rows:
        raise UsageError(
            f"`env_steps` must be at least one rollout, {config.num_envs} environments x "
            f"{config.rollout_length} = {rows}, got {config.env_steps}; try --env-steps {rows}"
        )
