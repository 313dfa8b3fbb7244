"""From the names a person gives to an environment, an algorithm, and the driver of both."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from backflip.algorithms.interface import Algorithm, Settings, for_learned_reward
from backflip.algorithms.registry import check_spaces, entry_of
from backflip.core.errors import EnvironmentFailed
from backflip.core.spec import EnvSpec, changes
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.registry import make_host, make_native
from backflip.envs.spec import HostEnv, NativeEnv
from backflip.training.memory import check_network
from backflip.training.renamed_settings import current_names
from backflip.training.algorithm_config import check_against, configure
from runshelf.store.run import Run


class Built(NamedTuple):
    """What a run is made of.

    Attributes:
        driver: environment and algorithm, joined.
        config: the algorithm's settings, all of them.
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
    learned_reward: bool = False,
) -> Built:
    """Return the driver for names and settings, the environment's defaults filled in.

    Args:
        algorithm: its name.
        env: an id, as `backflip.envs.registry` takes it.
        env_args: for the environment's constructor.
        settings: of the algorithm; those not named take the default for the environment.
        complete: all settings are named already, as in the configuration of an old run.
        learned_reward: the algorithm will learn from a reward model.

    Raises:
        UsageError: something of it does not exist or does not fit.
    """
    entry = entry_of(algorithm)
    native, spec = make_native(env, env_args), spec_of(env, env_args)
    check_spaces(entry, spec)
    given = {} if complete else entry.defaults_for(spec, settings)
    config = configure(entry, {**given, **settings})
    check_against(config, spec)
    check_network(config, spec)
    learner = entry.build(config, spec)
    if learned_reward:
        learner = for_learned_reward(learner, spec)
    return Built(_driver(native, env, env_args, learner, spec), config)


def spec_of(env: str, env_args: Mapping[str, Any]) -> EnvSpec:
    """Return the facts of an environment; one made outside JAX to read them is closed again.

    Raises:
        UsageError: there is no such environment, or its arguments do not fit.
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
    """Return what an old run is made of."""
    return build(
        run.manifest["algorithm"],
        run.manifest["env"],
        env_args=env_args_of(run),
        settings=current_names(run.config["settings"]),
        complete=True,
        learned_reward=run.manifest["command"] == "teach",
    )


def env_args_of(run: Run) -> dict[str, Any]:
    """Return what a run's environment was made with; tuples come back from JSON as lists."""
    saved: Mapping[str, Any] = run.config["env_args"]
    return {key: tuple(x) if isinstance(x, list) else x for key, x in saved.items()}


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
                f"environment `{env}` is made a second time and is another: {changed}; its spaces "
                "must not depend on how often it was made"
            )
        return batch

    return HostDriver(make, algorithm)
