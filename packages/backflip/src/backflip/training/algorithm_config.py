"""Makes an algorithm's configuration from settings, and checks it."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.interface import Settings
from backflip.core.settings import LARGEST_COUNT, resolve
from backflip.core.spec import EnvSpec
from backflip.training.renamed_settings import NAMES
from runshelf.errors import UsageError


def configure(entry: AlgorithmEntry, settings: Mapping[str, Any]) -> Settings:
    """Return the configuration of an algorithm: its defaults, updated with the given settings.

    Raises:
        UsageError: settings are unknown, invalid or inconsistent; the message has all unknown and
            invalid ones.
    """
    config: Settings = resolve(entry.config, settings, NAMES)
    _check_sizes(config)
    return config


def check_against(config: Settings, spec: EnvSpec) -> None:
    """Refuse settings that are invalid for an environment.

    Raises:
        UsageError: `discount` is 1 and episodes never terminate, so values would be infinite.
    """
    if getattr(config, "discount", 0.0) == 1.0 and not spec.terminates:
        raise UsageError(
            f"`discount` must be below 1 for `{spec.id}`, whose episodes only a time limit ends: "
            "the value of an endless episode would be infinite; try --set discount=0.99"
        )


def with_schedules_of(config: Settings, updates: int) -> Settings:
    """Return the settings with schedules that end after `updates` updates.

    It changes `env_steps`, on which nothing else depends in an algorithm without a replay.
    """
    if updates == config.updates:
        return config
    known: Any = config
    return dataclasses.replace(known, env_steps=updates * known.num_envs * known.rollout_length)


def _check_sizes(config: Any) -> None:
    """Refuse a rollout size that does not fit `minibatches` or `env_steps`."""
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
            f"each, because the advantage of a single row is normalised to 0, got {minibatches}"
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
