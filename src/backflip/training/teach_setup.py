"""What a run of `teach` is set up with: its budget, and both configurations."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from backflip.core.errors import UsageError, did_you_mean
from backflip.training.build import Built, build, spec_of
from backflip.training.offers import offer_of
from backflip.training.starting import Start
from backflip.training.teach_settings import TeachConfig, clip_rollouts, teach_settings


def budget_of(labels: int | None, start: Start, usual: int) -> int:
    """Return the labels that each seed is to have.

    Args:
        labels: as many as the user named, if any.
        start: what the run starts from.
        usual: the number where nothing else says one.
    """
    if start.reward_from:
        if labels is not None:
            raise UsageError("with --reward-from nothing is asked: leave --labels out")
        return 0
    if labels is not None and labels < 2:
        raise UsageError(f"`labels` must be at least 2, got {labels}; try --labels 100")
    return max(labels if labels is not None else start.labels or usual, start.labels)


def resolve_teaching(
    algorithm: str,
    env: str,
    env_args: Mapping[str, Any],
    settings: Mapping[str, Any],
    env_steps: int | None,
    labels: int,
) -> tuple[TeachConfig, Built]:
    """Return both configurations, the defaults for the environment filled in."""
    own = {field.name for field in dataclasses.fields(TeachConfig)}
    learners = {field.name for field in dataclasses.fields(offer_of(algorithm).config)}
    unknown = [name for name in settings if name not in own | learners]
    if unknown:
        named = "; ".join(f"`{name}`{did_you_mean(name, own | learners)}" for name in unknown)
        raise UsageError(f"unknown settings {named} (known: {', '.join(sorted(own | learners))})")
    if "labels" in settings:
        raise UsageError("settings: how many `labels` is said by --labels, in Python by labels=")
    chosen = {name: value for name, value in settings.items() if name not in own}
    spec = spec_of(env, env_args)
    learning, teaching = teach_settings(algorithm, spec)
    learning |= chosen | ({} if env_steps is None else {"env_steps": env_steps})
    teaching |= {name: value for name, value in settings.items() if name in own}
    built = build(algorithm, env, env_args=env_args, settings=learning)
    _check_kinds(teaching)
    asked = int(teaching.get("phases", TeachConfig.phases))
    phases = asked if "phases" in settings else min(asked, built.config.updates)
    numbers: dict[str, Any] = {"labels": labels, "phases": phases}
    config = TeachConfig(**(teaching | numbers))
    config.check(spec, built.config.updates)
    if "clip_rollouts" not in teaching:
        rollouts = clip_rollouts(built.driver.algorithm, config.clip_envs)
        config = dataclasses.replace(config, clip_rollouts=rollouts)
    return config, built


def _check_kinds(teaching: Mapping[str, Any]) -> None:
    """Refuse values of another type than the field's."""
    wrong: list[str] = []
    for field in dataclasses.fields(TeachConfig):
        value, kind = teaching.get(field.name, field.default), type(field.default)
        wanted = (int, float) if kind is float else kind
        if not isinstance(value, wanted) or isinstance(value, bool):
            names: dict[Any, str] = {int: "a whole number", float: "a number"}
            what = names.get(kind, "disagreement or uniform")
            wrong.append(f"`{field.name}` must be {what}, got {value!r}")
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")
