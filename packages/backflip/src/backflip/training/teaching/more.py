"""The budget and the configuration of a child of a run of `teach`."""

import dataclasses
from typing import NamedTuple

from backflip.algorithms.interface import Settings
from backflip.core.paths import name_on_command_line
from backflip.preferences.program_source import NoTeacher
from backflip.training.build import Built
from backflip.training.parents import Before, before_of
from backflip.training.queries.initial_labels import Start
from backflip.training.teaching.config import TeachConfig, saved_teaching
from backflip.training.teaching.phases import phases_for_clips
from runshelf.errors import UsageError
from runshelf.store.run import Run


class MoreBudget(NamedTuple):
    """What a child adds to its parent, for each seed."""

    labels: int
    env_steps: int


def asks(run: Run) -> bool:
    """Return whether a run of `teach` makes queries, beyond labels that it starts with."""
    start = Start(**run.config.get("start", {}))
    return run.config["teaching"]["labels"] > max(start.labels, before_of(run).labels)


def can_ask(run: Run) -> bool:
    """Return whether a run of `teach` has a teacher who can answer queries of a child."""
    borrowed = run.config.get("start", {}).get("reward_from")
    return run.config["teacher"] != NoTeacher.teacher and not borrowed


def more_budget(
    parent: Run, own: Settings, before: Before, labels: int | None, env_steps: int | None
) -> MoreBudget:
    """Return the budget of a child.

    Without `env_steps`, each new label gets as many env steps as each label so far. A small number
    of labels gets at least the env steps that its queries need.

    Args:
        parent: a run of `teach`.
        own: the settings of its algorithm.
        before: what it and its parents had done.
        labels: the user's number of labels, if any.
        env_steps: the user's number of env steps, if any.

    Raises:
        UsageError: nothing more is asked for, or there is no teacher who can answer.
    """
    if labels is None and env_steps is None:
        raise UsageError("how much more? Add --labels 50, --env-steps 50000, or both")
    if labels is None:
        return MoreBudget(0, env_steps or 0)
    if labels < 1:
        raise UsageError(f"`labels` must be at least 1, got {labels}; try --labels 50")
    if not can_ask(parent):
        raise UsageError(
            f"run `{name_on_command_line(parent)}` has no teacher who could answer: use "
            "--env-steps without --labels, or start a new run"
        )
    if env_steps is None:
        in_proportion = before.env_steps * (labels / before.labels if before.labels else 1)
        least = _fewest_updates(saved_teaching(parent.config["teaching"]), own)
        env_steps = max(round(in_proportion), least * own.num_envs * own.rollout_length)
    return MoreBudget(labels, env_steps)


def _fewest_updates(config: TeachConfig, own: Settings) -> int:
    """Return the updates of two phases with a clip of the agent each."""
    return 2 * -(-config.clip_length // own.rollout_length)


def child_config(parent: Run, before: Before, built: Built, labels: int) -> TeachConfig:
    """Return the configuration of teaching of a child that gets `labels` more labels.

    Raises:
        UsageError: there are too few updates for queries about the agent between them.
    """
    config = saved_teaching(parent.config["teaching"])
    updates = built.config.updates - before.updates
    own, least = built.config, _fewest_updates(config, built.config)
    if labels and updates < least:
        raise UsageError(
            f"labels need {least} updates or more, with queries about clips of "
            f"{config.clip_length} env steps between them; try --env-steps "
            f"{least * own.num_envs * own.rollout_length}"
        )
    phases = min(max(config.phases, 2 if labels else 1), updates)
    config = dataclasses.replace(config, labels=before.labels + labels, phases=phases)
    if not labels:
        return config
    return dataclasses.replace(config, phases=phases_for_clips(config, own, updates))
