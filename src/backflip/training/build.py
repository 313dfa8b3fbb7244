"""From the names a person gives to an environment, an algorithm, and the driver of both."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from backflip.algorithms.driver import Driver
from backflip.algorithms.host import HostDriver
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.ppo import PPOConfig, ppo
from backflip.algorithms.rollout import NativeDriver
from backflip.archive.run import Run
from backflip.core.errors import UsageError, did_you_mean
from backflip.core.spec import Discrete, EnvSpec
from backflip.envs.registry import make_host, make_native
from backflip.envs.spec import HostEnv, NativeEnv
from backflip.training import defaults


@dataclass(frozen=True)
class Offer:
    """One algorithm by name.

    Attributes:
        config: the frozen dataclass of its settings.
        build: (config, spec) -> the algorithm.
        defaults: (spec) -> settings that suit the environment.
    """

    config: type[PPOConfig]
    build: Callable[[Any, EnvSpec], Algorithm]
    defaults: Callable[[EnvSpec], dict[str, Any]]


ALGORITHMS = {"ppo": Offer(PPOConfig, ppo, defaults.ppo_settings)}


class Built(NamedTuple):
    """What a run is made of.

    Attributes:
        driver: environment and algorithm, joined.
        config: the algorithm's settings, all of them.
    """

    driver: Driver
    config: PPOConfig


def build(
    algorithm: str,
    env: str,
    *,
    env_args: Mapping[str, Any],
    settings: Mapping[str, Any],
    complete: bool = False,
) -> Built:
    """Return the driver for names and settings, the environment's defaults filled in.

    Args:
        algorithm: its name.
        env: an id, as `backflip.envs.registry` takes it.
        env_args: for the environment's constructor.
        settings: of the algorithm; those not named take the default for the environment.
        complete: all settings are named already, as in the configuration of an old run.

    Raises:
        UsageError: something of it does not exist or does not fit.
    """
    offer = _offer(algorithm)
    native = make_native(env, env_args)
    spec = native.spec if native else _host_spec(env, env_args)
    given = {} if complete else offer.defaults(spec)
    config = resolve(offer.config, {**given, **settings})
    learner = offer.build(config, spec)
    return Built(_driver(native, env, env_args, learner), config)


def rebuild(run: Run) -> Built:
    """Return what an old run is made of; tuples come back from JSON as lists."""
    saved = run.config["env_args"]
    return build(
        run.manifest["algorithm"],
        run.manifest["env"],
        env_args={key: tuple(x) if isinstance(x, list) else x for key, x in saved.items()},
        settings=run.config["settings"],
        complete=True,
    )


def resolve(kind: type[PPOConfig], settings: Mapping[str, Any]) -> PPOConfig:
    """Return settings as their dataclass, with numbers of the types its fields have.

    Raises:
        UsageError: unknown settings, or values that cannot be; all of them at once.
    """
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    unknown = [f"`{name}`{did_you_mean(name, fields)}" for name in settings if name not in fields]
    if unknown:
        raise UsageError(f"unknown settings {'; '.join(unknown)} (known: {', '.join(fields)})")
    wrong = [
        f"`{name}` must be {_wanted(fields[name])}, got {value!r}"
        for name, value in settings.items()
        if not _fits(value, fields[name])
    ]
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")
    typed = {name: _like(fields[name], value) for name, value in settings.items()}
    config = kind(**typed)
    _check_sizes(config)
    return config


def spec_to_json(spec: EnvSpec) -> dict[str, Any]:
    """Return what acting needs to know of an environment, as JSON values."""
    action = spec.action
    if isinstance(action, Discrete):
        bounds = {"n": action.n}
    else:
        bounds = {"low": action.low, "high": action.high}
    seen = {"shape": spec.observation.shape, "dtype": spec.observation.dtype.name}
    return {
        "id": spec.id,
        "observation": seen,
        "action": bounds,
        "max_episode_steps": spec.max_episode_steps,
        "frame_stack": spec.frame_stack,
    }


def _offer(algorithm: str) -> Offer:
    if algorithm not in ALGORITHMS:
        raise UsageError(
            f"unknown algorithm `{algorithm}`{did_you_mean(algorithm, ALGORITHMS)} "
            f"(there are: {', '.join(ALGORITHMS)})"
        )
    return ALGORITHMS[algorithm]


def _host_spec(env: str, env_args: Mapping[str, Any]) -> EnvSpec:
    one = make_host(env, env_args, 1)
    try:
        return one.spec
    finally:
        one.close()


def _driver(
    native: NativeEnv | None, env: str, env_args: Mapping[str, Any], algorithm: Algorithm
) -> Driver:
    if native is not None:
        return NativeDriver(native, algorithm)

    def make(rows: int) -> HostEnv:
        return make_host(env, env_args, rows)

    return HostDriver(make, algorithm)


def _wanted(default: Any) -> str:
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, tuple):
        return "whole numbers, at least 1"
    return "a whole number" if isinstance(default, int) else "a finite number"


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, tuple):
        return isinstance(value, list | tuple) and all(_is_size(part) for part in value)
    if isinstance(default, int):
        return isinstance(value, int | np.integer)
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _like(default: Any, value: Any) -> Any:
    return tuple(value) if isinstance(default, tuple) else type(default)(value)


def _check_sizes(config: PPOConfig) -> None:
    wrong = [
        f"`{name}` must be at least 1, got {getattr(config, name)}"
        for name in ("num_envs", "rollout_length", "epochs", "minibatches")
        if getattr(config, name) < 1
    ]
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")
    rows = config.num_envs * config.rollout_length
    if rows % config.minibatches:
        raise UsageError(
            f"`minibatches` must divide num_envs x rollout_length = {rows}, "
            f"got {config.minibatches}"
        )
    if config.env_steps < rows:
        raise UsageError(
            f"`env_steps` must be at least one rollout, {config.num_envs} environments x "
            f"{config.rollout_length} = {rows}, got {config.env_steps}"
        )
