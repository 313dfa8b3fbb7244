"""Builds environment, algorithm and driver from their names and settings."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.interface import Algorithm, Settings, for_learned_reward
from backflip.algorithms.registry import check_spaces, entry_of
from backflip.core.errors import EnvironmentFailed
from backflip.core.spec import EnvSpec, changes
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.learning import env_steps_after
from backflip.drivers.native import NativeDriver
from backflip.envs.registry import make_host, make_native
from backflip.envs.spec import HostEnv, NativeEnv
from backflip.training.algorithm_config import check_against, configure, with_schedules_of
from backflip.training.memory import check_network
from backflip.training.named_code import refuse_code_of
from backflip.training.parents import NO_PARENT, Before, before_of
from backflip.training.renamed_settings import current_names
from backflip.training.teaching.config import TeachConfig, saved_teaching
from backflip.training.teaching.schedules import schedule_updates
from runshelf.store.run import Run


class Built(NamedTuple):
    """The parts of a run.

    Attributes:
        driver: the driver, with environment and algorithm.
        config: all settings of the algorithm.
    """

    driver: Driver
    config: Settings


def build(
    algorithm: str,
    env: str,
    *,
    env_args: Mapping[str, Any],
    settings: Mapping[str, Any],
    complete: bool = False,
    teaching: TeachConfig | None = None,
    before: Before = NO_PARENT,
) -> Built:
    """Return driver and settings, with the environment's defaults for missing settings.

    Args:
        algorithm: the algorithm's name.
        env: the environment's id (see `backflip.envs.registry`).
        env_args: arguments of the environment's constructor.
        settings: settings of the algorithm.
        complete: `settings` has all settings, as in the configuration of a saved run.
        teaching: the settings of teaching; None if the algorithm learns from the environment's own
            reward.
        before: what the parents of the run had done.

    Raises:
        UsageError: a name does not exist, or a setting is invalid.
    """
    entry = entry_of(algorithm)
    native, spec = make_native(env, env_args), spec_of(env, env_args)
    config = configured(entry, spec, settings, complete=complete)
    learner = entry.build(config, spec)
    if teaching is not None:
        if learner.replay is None:
            updates = schedule_updates(teaching, config, before)
            learner = entry.build(with_schedules_of(config, updates), spec)
        learner = for_learned_reward(learner, spec, teaching.recency)
    learner = _with_replay_of_the_run(learner, config.updates)
    return Built(_driver(native, env, env_args, learner, spec), config)


def configured(
    entry: AlgorithmEntry, spec: EnvSpec, settings: Mapping[str, Any], *, complete: bool = False
) -> Settings:
    """Return all settings of an algorithm, with the environment's defaults for missing ones.

    Raises:
        UsageError: the algorithm cannot act in the environment, or a setting is invalid.
    """
    check_spaces(entry, spec)
    given = {} if complete else entry.defaults_for(spec, settings)
    config = configure(entry, {**given, **settings})
    check_against(config, spec)
    check_network(config, spec)
    return config


def spec_of(env: str, env_args: Mapping[str, Any]) -> EnvSpec:
    """Return the spec of an environment; one outside JAX is made and closed.

    Raises:
        UsageError: there is no such environment, or its arguments are invalid.
    """
    native = make_native(env, env_args)
    if native is not None:
        return native.spec
    one = make_host(env, env_args, 1)
    try:
        return one.spec
    finally:
        one.close()


def rebuild(run: Run) -> Built:
    """Return the parts of a saved run."""
    return build(
        run.manifest["algorithm"],
        run.manifest["env"],
        env_args=env_args_of(run),
        settings=current_names(run.config["settings"]),
        complete=True,
        teaching=teaching_of(run),
        before=before_of(run),
    )


def teaching_of(run: Run) -> TeachConfig | None:
    """Return the settings of teaching of a run of `teach`; None for other runs."""
    if run.manifest["command"] != "teach":
        return None
    return saved_teaching(run.config["teaching"])


def env_args_of(run: Run) -> dict[str, Any]:
    """Return the environment arguments of a run; JSON lists become tuples."""
    refuse_code_of(run)
    saved: Mapping[str, Any] = run.config["env_args"]
    return {key: tuple(x) if isinstance(x, list) else x for key, x in saved.items()}


def _with_replay_of_the_run(learner: Algorithm, updates: int) -> Algorithm:
    """Return the algorithm with a replay that is no larger than `updates` need.

    One rollout more is kept, so that a child of the run finds rows that never wrapped around. A
    prioritized replay stays as it is: the size of its tree depends on its capacity.
    """
    plan = learner.replay
    if plan is None or plan.priority is not None:
        return learner
    most = env_steps_after(learner, updates + 1)
    return learner._replace(replay=plan._replace(capacity=min(plan.capacity, most)))


def _driver(
    native: NativeEnv | None,
    env: str,
    env_args: Mapping[str, Any],
    algorithm: Algorithm,
    spec: EnvSpec,
) -> Driver:
    if native is not None:
        return NativeDriver(native, algorithm)

    def make(rows: int) -> HostEnv:
        batch = make_host(env, env_args, rows)
        if changed := changes(spec, batch.spec):
            batch.close()
            raise EnvironmentFailed(
                f"environment `{env}` differs when it is made a second time: {changed}; every "
                "instance must have the same spaces"
            )
        return batch

    return HostDriver(make, algorithm)
