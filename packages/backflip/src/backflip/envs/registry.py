"""Create environments from their ids: native ones, Gymnasium's, or a user's `module:Name`.

JAX and Gymnasium are imported only when an environment is created.
"""

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from backflip.envs.arguments import (
    LIMIT,
    fitting,
    fixed_horizon_only,
    parameters_of,
    refuse_missing,
    time_limit_only,
    with_limit,
)
from backflip.envs.ids import (
    ATARI_PREFIX,
    CONTROL_PREFIX,
    FIXED_PREFIX,
    HOST_PREFIX,
    NATIVE,
    family,
    gymnasium_spec,
    newest,
    refuse_old_atari,
)
from backflip.envs.stdout_guard import stdout_kept_open
from backflip.envs.user_envs import check_native, is_gymnasium, made_by, user_env
from runshelf.errors import UsageError, UserFacingError, one_line

if TYPE_CHECKING:
    from backflip.envs.spec import HostEnv, NativeEnv

EXTRAS = {  # entry point -> the extra of backflip that installs its package
    "ale_py": "atari",
    "gymnasium.envs.mujoco": "mujoco",
}
PACKAGES = {"atari": "ale-py"}  # extra -> package, if the names differ
# The tasks of `backflip.envs.mujoco.tasks`.
BATCHED = (
    "Ant-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Humanoid-v5",
    "InvertedDoublePendulum-v5",
    "InvertedPendulum-v5",
    "Reacher-v5",
    "Swimmer-v5",
    "Walker2d-v5",
)
# Families of Gymnasium ids in which no state terminates.
ENDLESS = ("HalfCheetah", "HumanoidStandup", "Pendulum", "Pusher", "Reacher", "Swimmer")


def is_native(env_id: str) -> bool:
    """Return whether `env_id` names an environment in JAX, built in or a user's class.

    Raises:
        UsageError: a `module:Name` cannot be loaded or is not an environment.
    """
    if env_id in NATIVE:
        return True
    own = user_env(env_id)
    return own is not None and not is_gymnasium(own)


def make_native(env_id: str, args: Mapping[str, Any] | None = None) -> "NativeEnv | None":
    """Create an environment in JAX; return None if `env_id` is a host environment.

    Raises:
        UsageError: the arguments are invalid, or a `module:Name` is not an environment.
    """
    own = user_env(env_id)
    target = _load(NATIVE[env_id]) if env_id in NATIVE else own
    if target is None or is_gymnasium(target):
        return None
    parameters = parameters_of(target)
    args = fitting(env_id, parameters, args or {})
    refuse_missing(env_id, parameters, args)
    env = _construct(env_id, "", lambda: target(**args))
    if own is not None:
        check_native(env_id, env)
    return env


def make_host(
    env_id: str,
    args: Mapping[str, Any] | None = None,
    num_envs: int = 1,
    autoreset: str = "next_step",
) -> "HostEnv":
    """Create a batch of `num_envs` environments that are stepped outside JAX.

    Args:
        env_id: a Gymnasium id such as `ALE/Pong-v5` or `Hopper-v5`; `fixed:Hopper-v5`, which only
            the time limit ends; `dm_control:cheetah-run`; `module:Class`; or
            `module:function`, which returns a new environment at each call. The prefix
            `gymnasium:` selects Gymnasium's own environment instead of our version.
        args: constructor arguments, as `parse_env_args` returns them.
        num_envs: batch size, at least 1.
        autoreset: Gymnasium's `next_step` or `same_step`.

    Raises:
        UsageError: the environment does not exist, its package is not installed, the arguments
            are invalid, or its spaces are not supported.
    """
    from backflip.envs.gymnasium import GymnasiumEnv  # noqa: PLC0415  (takes a second to import)
    from backflip.envs.views.choose import draws_itself  # noqa: PLC0415

    args = args or {}
    if env_id.startswith(ATARI_PREFIX):
        return _atari(env_id, args, num_envs, autoreset)
    if env_id.startswith(CONTROL_PREFIX):
        return _dm_control(env_id, args, num_envs, autoreset)
    if env_id.startswith(FIXED_PREFIX) or (env_id in BATCHED and args.keys() <= {LIMIT.name}):
        return _mujoco(env_id, args, num_envs, autoreset)
    own = user_env(env_id)
    if own is not None and not is_gymnasium(own):
        raise UsageError(f"environment `{env_id}` is written in JAX and has no host path")
    if own is None:
        refuse_old_atari(env_id)
    extra, limit = "" if own else _extra(env_id), None
    if own:
        make, limit = _own_make(env_id, own, args)
    else:
        make = _gymnasium_make(env_id, extra, args)
    ends = bool(own) or family(env_id) not in ENDLESS
    itself = draws_itself(env_id, args)
    return _construct(
        env_id,
        extra,
        lambda: GymnasiumEnv.of(env_id, make, num_envs, autoreset, ends, limit, itself),
    )


def atari_facts(env_id: str, args: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return the facts of an Atari environment as (name, text) pairs.

    Raises:
        UsageError: the game does not exist, ale-py is not installed, or an argument is invalid.
    """
    game, settings = _atari_settings(env_id, args or {})
    return _load("backflip.envs.atari:facts")(env_id, game, settings)


def _atari(env_id: str, args: Mapping[str, Any], num_envs: int, autoreset: str) -> "HostEnv":
    from backflip.envs.gymnasium import GymnasiumEnv, mode_of  # noqa: PLC0415

    mode, (game, settings) = mode_of(num_envs, autoreset), _atari_settings(env_id, args)

    def build() -> GymnasiumEnv:
        from backflip.envs.atari import STACK, AtariBatch  # noqa: PLC0415

        batch = AtariBatch(game, num_envs, mode, settings)
        limit = settings.limit()
        return GymnasiumEnv(
            env_id,
            batch,
            max_episode_steps=limit,
            frame_stack=STACK,
            repeats_first_frame=False,  # ale-py pads the first stacks with black frames
        )

    return _construct(env_id, "atari", build)


def _atari_settings(env_id: str, args: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the game of an ale-py id and the settings from its arguments."""
    kind = _construct(env_id, "atari", lambda: _load("backflip.envs.atari:AtariSettings"))
    game = gymnasium_spec(env_id).kwargs["game"]
    return game, kind(**fitting(env_id, parameters_of(kind), args))


def _mujoco(env_id: str, args: Mapping[str, Any], num_envs: int, autoreset: str) -> "HostEnv":
    """Create one of `BATCHED`, with a fixed horizon if the id has that prefix."""
    from backflip.envs.gymnasium import GymnasiumEnv, mode_of  # noqa: PLC0415

    name, fixed = env_id.removeprefix(FIXED_PREFIX), env_id.startswith(FIXED_PREFIX)
    endless = family(name) in ENDLESS
    if fixed and (name not in BATCHED or endless):
        known = [f"{FIXED_PREFIX}{x}" for x in BATCHED if family(x) not in ENDLESS]
        why = f"`{name}` already has a fixed horizon" if endless else "it is not known"
        raise UsageError(f"unknown environment `{env_id}`: {why} (known: {', '.join(known)})")
    checked = fixed_horizon_only if fixed else time_limit_only
    mode, args = mode_of(num_envs, autoreset), checked(env_id, args)

    def build() -> GymnasiumEnv:
        from backflip.envs.mujoco.batch import MujocoBatch  # noqa: PLC0415

        batch = MujocoBatch(name, num_envs, mode, **args, fixed_horizon=fixed)
        limit, ends = batch.max_episode_steps, not (fixed or endless)
        return GymnasiumEnv(env_id, batch, max_episode_steps=limit, terminates=ends)

    return _construct(env_id, "mujoco", build)


def _dm_control(env_id: str, args: Mapping[str, Any], num_envs: int, autoreset: str) -> "HostEnv":
    from backflip.envs.gymnasium import GymnasiumEnv  # noqa: PLC0415

    name, args = env_id.removeprefix(CONTROL_PREFIX), time_limit_only(env_id, args)

    def build() -> GymnasiumEnv:
        from backflip.envs.dm_control import EPISODE_STEPS, ControlTask, terminates  # noqa: PLC0415

        limit = args.get(LIMIT.name, EPISODE_STEPS)
        make = functools.partial(ControlTask, name, limit)
        return GymnasiumEnv.of(env_id, make, num_envs, autoreset, terminates(name), limit)

    return _construct(env_id, "dm_control", build)


def _gymnasium_make(env_id: str, extra: str, args: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function of `render_mode` that creates a Gymnasium environment.

    The arguments are checked first.
    """
    import gymnasium  # noqa: PLC0415
    from gymnasium.envs.registration import load_env_creator  # noqa: PLC0415

    entry_point = gymnasium_spec(env_id).entry_point
    if isinstance(entry_point, str):
        entry_point = _construct(env_id, extra, lambda: load_env_creator(entry_point))
    args = fitting(env_id, with_limit(parameters_of(entry_point)), args)
    name = env_id.removeprefix(HOST_PREFIX)
    # Our adapter checks the returned data; Gymnasium's checker only warns.
    return functools.partial(gymnasium.make, name, disable_env_checker=True, **args)


def _extra(env_id: str) -> str:
    """Return backflip's extra that installs a Gymnasium environment's package, or nothing."""
    entry_point = str(gymnasium_spec(env_id).entry_point)
    return next((extra for start, extra in EXTRAS.items() if entry_point.startswith(start)), "")


def _own_make(
    env_id: str, own: Callable[..., Any], args: Mapping[str, Any]
) -> tuple[Callable[..., Any], int | None]:
    """Return a function that creates a user's Gymnasium environment, and the time limit added.

    The function takes a `render_mode`, too. A class or function with a parameter
    `max_episode_steps` applies the limit itself.
    """
    from gymnasium.wrappers import TimeLimit  # noqa: PLC0415

    parameters = parameters_of(own)
    if LIMIT.name in (parameters or {}):
        args = fitting(env_id, parameters, args)
        refuse_missing(env_id, parameters, args)
        return functools.partial(_made_with, env_id, own, args), None
    args = fitting(env_id, with_limit(parameters), args)
    refuse_missing(env_id, parameters, args)
    limit = time_limit_only(env_id, {name: x for name, x in args.items() if name == LIMIT.name})
    args = {name: x for name, x in args.items() if name != LIMIT.name}
    if not limit:
        return functools.partial(_made_with, env_id, own, args), None

    def limited(**drawn: str) -> Any:
        return TimeLimit(made_by(env_id, own, {**args, **drawn}), **limit)

    return limited, limit[LIMIT.name]


def _made_with(env_id: str, own: Callable[..., Any], args: Mapping[str, Any], **drawn: str) -> Any:
    return made_by(env_id, own, {**args, **drawn})


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _construct(env_id: str, extra: str, build: Callable[[], Any]) -> Any:
    """Return the result of `build`; any exception becomes a one-line UsageError."""
    try:
        with warnings.catch_warnings(), stdout_kept_open():
            warnings.simplefilter("ignore")
            return build()
    except (UserFacingError, KeyboardInterrupt):
        raise
    except BaseException as error:  # includes SystemExit
        missing = isinstance(error, ImportError) or type(error).__name__ == "DependencyNotInstalled"
        if missing and extra:
            package = PACKAGES.get(extra, extra)
            raise UsageError(
                f"environment `{env_id}` needs {package}, which is not installed; "
                f"try: pip install 'backflip[{extra}]'"
            ) from error
        newer = newest(env_id)
        hint = f"; try {newer}" if newer not in ("", env_id) else ""
        raise UsageError(
            f"environment `{env_id}` cannot be created: {one_line(error)}{hint}"
        ) from error
