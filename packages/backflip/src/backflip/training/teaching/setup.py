"""Label budget and configurations of a run of `teach`."""

import dataclasses
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from backflip.algorithms.interface import Settings
from backflip.algorithms.registry import entry_of
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.settings import LARGEST_COUNT, name_problems, resolve
from backflip.rewards.interface import RewardModel
from backflip.rewards.registry import make_reward_model
from backflip.training.build import Built, build, configured, spec_of
from backflip.training.queries.initial_labels import Start
from backflip.training.queries.optimism import refuse_without_spread
from backflip.training.renamed_settings import NAMES
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.defaults import clip_rollouts, teach_settings
from backflip.training.teaching.phases import refuse_short_phases, usual_phases, with_phases
from runshelf.errors import UsageError, shown


def budget_of(labels: int | None, start: Start, usual: int) -> int:
    """Return the label budget of each seed.

    Args:
        labels: the user's number, if any.
        start: initial labels or reward model.
        usual: the default.
    """
    if start.reward_from:
        if labels is not None:
            raise UsageError("--reward-from makes no queries: leave out --labels")
        return 0
    if labels is not None and not (isinstance(labels, Integral) and 2 <= labels <= LARGEST_COUNT):
        raise UsageError(f"`labels` must be at least 2, got {shown(labels)}; try --labels 100")
    if labels is not None and labels < start.labels:
        raise UsageError(
            f"--labels {labels} is less than the {start.labels} labels that are imported; leave it "
            "out to ask for no more"
        )
    return labels if labels is not None else start.labels or usual


def resolve_teaching(
    algorithm: str,
    env: str,
    env_args: Mapping[str, Any],
    settings: Mapping[str, Any],
    env_steps: int | None,
    labels: int,
    *,
    asks: bool = True,
) -> tuple[TeachConfig, Built]:
    """Return the configuration of teaching, and driver and settings of the algorithm.

    Args:
        algorithm: the algorithm's name.
        env: the environment's id.
        env_args: arguments of the environment's constructor.
        settings: the user's settings, of the algorithm and of teaching.
        env_steps: the user's env steps of each seed, if any.
        labels: the label budget of each seed.
        asks: whether the run makes queries, whose clips must fit into a phase.

    Raises:
        UsageError: a setting is unknown, invalid, or does not fit the others.
    """
    of_teaching = {field.name for field in dataclasses.fields(TeachConfig)}
    known = sorted({*of_teaching, *entry_of(algorithm).settings})
    if problems := name_problems(settings, known, NAMES):
        raise UsageError(f"settings: {'; '.join(problems)}")
    if "labels" in settings:
        raise UsageError("settings: set the number of `labels` with --labels, in Python labels=")
    chosen = {name: value for name, value in settings.items() if name not in of_teaching}
    spec = spec_of(env, env_args)
    learning, teaching = teach_settings(algorithm, spec)
    if ":" in str(settings.get("reward_model", "")):
        teaching.pop("optimism", None)  # a class of the user's may not predict a spread
    learning |= chosen | ({} if env_steps is None else {"env_steps": env_steps})
    teaching |= {name: value for name, value in settings.items() if name in of_teaching}
    config = resolve(TeachConfig, teaching | {"labels": labels})
    if "clips_at_once" in settings and config.ask == "compare":
        raise UsageError(
            "settings: `clips_at_once` is the size of a set that is ranked or rated; add "
            "--ask rank or --ask rate"
        )
    entry = entry_of(algorithm)
    own = configured(entry, spec, learning)
    entry.build(own, spec)  # refuses settings with which no update would ever happen
    updates = _updates_after_pretraining(config, own)
    config = with_phases(config, own, updates, settings, asks=asks)
    config.check(spec, updates, usual_phases(config, own, updates))
    if "clip_rollouts" not in teaching:
        config = dataclasses.replace(config, clip_rollouts=clip_rollouts(own, spec, config))
    if asks:
        refuse_short_phases(config, own, updates)
    return config, build(algorithm, env, env_args=env_args, settings=learning, teaching=config)


def _updates_after_pretraining(config: TeachConfig, own: Settings) -> int:
    """Return the updates after the first queries could be made.

    Raises:
        UsageError: there are none.
    """
    before = rollouts_of(config.pretrain_env_steps, own.num_envs, own.rollout_length)
    if before < own.updates or not before:
        return own.updates - before
    most = (own.updates - 1) * own.num_envs * own.rollout_length
    raise UsageError(
        f"`pretrain_env_steps` must leave env steps to learn from labels: at most {most}, "
        f"got {config.pretrain_env_steps}; try --set pretrain_env_steps={most // 5}"
    )


def env_steps_of_one_rollout(
    algorithm: str, env: str, env_args: Mapping[str, Any], settings: Mapping[str, Any]
) -> int:
    """Return the fewest env steps of a run of `teach`: one rollout."""
    _, built = resolve_teaching(algorithm, env, env_args, settings, None, 2, asks=False)
    built.driver.close()
    return built.config.num_envs * built.config.rollout_length


def reward_model_of(config: TeachConfig, built: Built, demonstrated: bool) -> RewardModel:
    """Return the reward model of the settings.

    Args:
        config: the settings of teaching.
        built: driver and settings of the algorithm.
        demonstrated: whether demonstrations add labels.

    Raises:
        UsageError: no reward model has that name, the class is not a reward model, or the model
            cannot use the settings of a fit or a bonus for what is unknown.
    """
    labels = config.labels
    if demonstrated:
        labels += round(config.demonstration_share * labels)
    model = make_reward_model(
        config.reward_model, built.driver.spec, labels, config.clip_length, config.fit_settings
    )
    refuse_without_spread(model, config.optimism)
    return model
