"""From what a person types to an environment: our own by id, Gymnasium's, or `module:Class`.

Neither JAX nor Gymnasium is imported before an environment is made.
"""

import contextlib
import importlib
import inspect
import math
import re
import sys
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backflip.core.errors import BackflipError, UsageError, did_you_mean

if TYPE_CHECKING:
    from backflip.envs.spec import HostEnv, NativeEnv

EnvArg = int | float | bool | str | tuple[int | float | bool | str, ...]

HOST_PREFIX = "gymnasium:"
FIXED_PREFIX = "fixed:"
ATARI_PREFIX = "ALE/"
CONTROL_PREFIX = "dm_control:"
WHOLE = re.compile(r"[-+]?\d+e\+?\d{1,2}", re.IGNORECASE)  # a number such as 1e5
OLD_ATARI = re.compile(r"(\w+?)(?:NoFrameskip|Deterministic)?-(v0|v4)")
STICKY = {"v0": "0.25", "v4": "0"}  # the chance that an action is repeated
PREFIXES = (HOST_PREFIX, FIXED_PREFIX, CONTROL_PREFIX)
NATIVE = {
    "dot": "backflip.envs.native.dot:Dot",
    "Acrobot-v1": "backflip.envs.native.acrobot:Acrobot",
    "CartPole-v1": "backflip.envs.native.cartpole:CartPole",
    "FrozenLake-v1": "backflip.envs.native.frozen_lake:FrozenLake",
    "FrozenLake8x8-v1": "backflip.envs.native.frozen_lake:FrozenLake8x8",
    "MinAtar/Asterix-v0": "backflip.envs.native.minatar.asterix:AsterixV0",
    "MinAtar/Asterix-v1": "backflip.envs.native.minatar.asterix:Asterix",
    "MinAtar/Breakout-v0": "backflip.envs.native.minatar.breakout:BreakoutV0",
    "MinAtar/Breakout-v1": "backflip.envs.native.minatar.breakout:Breakout",
    "MinAtar/Freeway-v0": "backflip.envs.native.minatar.freeway:FreewayV0",
    "MinAtar/Freeway-v1": "backflip.envs.native.minatar.freeway:Freeway",
    "MinAtar/Seaquest-v0": "backflip.envs.native.minatar.seaquest:SeaquestV0",
    "MinAtar/Seaquest-v1": "backflip.envs.native.minatar.seaquest:Seaquest",
    "MinAtar/SpaceInvaders-v0": "backflip.envs.native.minatar.space_invaders:SpaceInvadersV0",
    "MinAtar/SpaceInvaders-v1": "backflip.envs.native.minatar.space_invaders:SpaceInvaders",
    "MountainCar-v0": "backflip.envs.native.mountain_car:MountainCar",
    "MountainCarContinuous-v0": (
        "backflip.envs.native.mountain_car_continuous:MountainCarContinuous"
    ),
    "Pendulum-v1": "backflip.envs.native.pendulum:Pendulum",
    "probe:1": "backflip.envs.native.probes:ConstantReward",
    "probe:2": "backflip.envs.native.probes:ObservedReward",
    "probe:3": "backflip.envs.native.probes:DelayedReward",
    "probe:4": "backflip.envs.native.probes:ChosenReward",
    "probe:5": "backflip.envs.native.probes:MatchedReward",
    "probe:truncation": "backflip.envs.native.probes:EndlessReward",
    "probe:continuous": "backflip.envs.native.probes:QuadraticReward",
    "probe:row": "backflip.envs.native.extra_probes:OneRowReward",
    "probe:scale": "backflip.envs.native.extra_probes:FarFromZero",
    "probe:bound": "backflip.envs.native.extra_probes:BestAtBound",
    "probe:zero": "backflip.envs.native.extra_probes:BestAtZero",
    "probe:memory": "backflip.envs.native.extra_probes:RememberedReward",
    "probe:distractor": "backflip.envs.native.extra_probes:Distracted",
    "probe:action": "backflip.envs.native.extra_probes:ActionReward",
}
EXTRAS = {  # the extra that brings what an entry point needs
    "ale_py": "atari",
    "gymnasium.envs.mujoco": "mujoco",
}
PACKAGES = {"atari": "ale-py"}  # what an extra brings, where it has another name
# The tasks of `backflip.envs.mujoco.tasks`, and of them those that a state can end.
STEPPED = (
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
# Families of Gymnasium's ids of which no state ends the task.
ENDLESS = ("HalfCheetah", "HumanoidStandup", "Pendulum", "Pusher", "Reacher", "Swimmer")
NATIVE_PARTS = ("spec", "reset", "step", "observe")
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
LIMIT = inspect.Parameter("max_episode_steps", inspect.Parameter.KEYWORD_ONLY, annotation=int)
UNHELPFUL = ("self", "render_mode")  # parameters that no `--env-arg` is for
WANTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "values with commas between",
}


def parse_env_args(texts: Sequence[str]) -> dict[str, EnvArg]:
    """Return the values of `KEY=VALUE` texts: numbers, true/false, tuples by comma, else text.

    Raises:
        UsageError: a text is not `KEY=VALUE`, or a key comes twice.
    """
    args: dict[str, EnvArg] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"--env-arg must be KEY=VALUE, got `{text}`; try --env-arg goal=40,60")
        if key in args:
            raise UsageError(f"--env-arg `{key}` is given twice; give it once")
        args[key] = _value(value)
    return args


def is_native(env_id: str) -> bool:
    """Return whether `env_id` names an environment written in JAX, ours or a person's own class.

    Raises:
        UsageError: a `module:Class` cannot be loaded or is no environment.
    """
    if env_id in NATIVE:
        return True
    own = _own_class(env_id)
    return own is not None and not _is_gymnasium(own)


def make_native(env_id: str, args: Mapping[str, Any] | None = None) -> "NativeEnv | None":
    """Return the environment written in JAX, or None where `env_id` is for the host path.

    Raises:
        UsageError: the arguments do not fit, or a `module:Class` is no environment.
    """
    own = _own_class(env_id)
    target = _load(NATIVE[env_id]) if env_id in NATIVE else own
    if target is None or _is_gymnasium(target):
        return None
    args = _fitting(env_id, _parameters(target), args or {})
    env = _construct(env_id, "", lambda: target(**args))
    if own is not None:
        _check_native(env_id, env)
    return env


def make_host(
    env_id: str,
    args: Mapping[str, Any] | None = None,
    num_envs: int = 1,
    autoreset: str = "next_step",
) -> "HostEnv":
    """Return `num_envs` copies of an environment, stepped outside JAX.

    Args:
        env_id: a Gymnasium id, `ALE/Pong-v5` and `Hopper-v5` among them; `fixed:Hopper-v5`, which
            only the time limit ends; `dm_control:cheetah-run`; or `module:Class`. With
            `gymnasium:` before it, an id is Gymnasium's own and not what we made of it.
        args: what `parse_env_args` returned.
        num_envs: how many, at least 1.
        autoreset: `next_step` or `same_step`, as Gymnasium means them.

    Raises:
        UsageError: there is no such environment, what it needs is not installed, the arguments
            do not fit, or its spaces are not supported.
    """
    from backflip.envs.gymnasium import GymnasiumEnv  # noqa: PLC0415  (takes a second to import)

    args = args or {}
    if env_id.startswith(ATARI_PREFIX):
        return _atari(env_id, args, num_envs, autoreset)
    if env_id.startswith(CONTROL_PREFIX):
        return _dm_control(env_id, args, num_envs, autoreset)
    if env_id.startswith(FIXED_PREFIX) or (env_id in STEPPED and args.keys() <= {LIMIT.name}):
        return _mujoco(env_id, args, num_envs, autoreset)
    own = _own_class(env_id)
    if own is not None and not _is_gymnasium(own):
        raise UsageError(f"environment `{env_id}` is written in JAX and has no host path")
    if own is None:
        _refuse_old_atari(env_id)
    extra = "" if own else _extra(env_id)
    make = _own_make(env_id, own, args) if own else _gymnasium_make(env_id, extra, args)
    ends = bool(own) or env_id.removeprefix(HOST_PREFIX).rpartition("-v")[0] not in ENDLESS
    return _construct(
        env_id, extra, lambda: GymnasiumEnv.of(env_id, make, num_envs, autoreset, ends)
    )


def atari_facts(env_id: str, args: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return what an Atari id and its arguments come down to, as a table of names and meanings.

    Raises:
        UsageError: there is no such game, ale-py is not installed, or the arguments do not fit.
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
            repeats_first_frame=False,  # ale-py's stacks begin black
        )

    return _construct(env_id, "atari", build)


def _atari_settings(env_id: str, args: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the game of an id of ale-py's and what its arguments set."""
    kind = _construct(env_id, "atari", lambda: _load("backflip.envs.atari:AtariSettings"))
    game = _gymnasium_spec(env_id).kwargs["game"]
    return game, kind(**_fitting(env_id, _parameters(kind), args))


def _mujoco(env_id: str, args: Mapping[str, Any], num_envs: int, autoreset: str) -> "HostEnv":
    """Return one of `STEPPED`, with a fixed horizon where the id says so."""
    from backflip.envs.gymnasium import GymnasiumEnv, mode_of  # noqa: PLC0415

    name, fixed = env_id.removeprefix(FIXED_PREFIX), env_id.startswith(FIXED_PREFIX)
    endless = name.rpartition("-v")[0] in ENDLESS
    if fixed and (name not in STEPPED or endless):
        known = [f"{FIXED_PREFIX}{x}" for x in STEPPED if x.rpartition("-v")[0] not in ENDLESS]
        why = f"only the time limit ends `{name}` as it is" if endless else "it is not known"
        raise UsageError(f"unknown environment `{env_id}`: {why} (there are: {', '.join(known)})")
    mode, args = mode_of(num_envs, autoreset), _limited(env_id, args)

    def build() -> GymnasiumEnv:
        from backflip.envs.mujoco.batch import MujocoBatch  # noqa: PLC0415

        batch = MujocoBatch(name, num_envs, mode, **args, fixed_horizon=fixed)
        limit, ends = batch.max_episode_steps, not (fixed or endless)
        return GymnasiumEnv(env_id, batch, max_episode_steps=limit, terminates=ends)

    return _construct(env_id, "mujoco", build)


def _dm_control(env_id: str, args: Mapping[str, Any], num_envs: int, autoreset: str) -> "HostEnv":
    from backflip.envs.gymnasium import GymnasiumEnv, mode_of  # noqa: PLC0415

    mode_of(num_envs, autoreset)
    if autoreset != "next_step":
        raise UsageError(f"environment `{env_id}` has no autoreset `{autoreset}`, only next_step")
    name, args = env_id.removeprefix(CONTROL_PREFIX), _limited(env_id, args)

    def build() -> GymnasiumEnv:
        from backflip.envs.dm_control import EPISODE_STEPS, ControlBatch, terminates  # noqa: PLC0415

        limit = args.get(LIMIT.name, EPISODE_STEPS)
        batch, ends = ControlBatch(name, num_envs, limit), terminates(name)
        return GymnasiumEnv(env_id, batch, max_episode_steps=limit, terminates=ends)

    return _construct(env_id, "envpool", build)


def _limited(env_id: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of which there can be only a time limit."""
    args = _fitting(env_id, {LIMIT.name: LIMIT}, args)
    if args.get(LIMIT.name, 1) < 1:
        raise UsageError(f"--env-arg `{LIMIT.name}` must be at least 1, got {args[LIMIT.name]}")
    return args


def _gymnasium_make(env_id: str, extra: str, args: Mapping[str, Any]) -> Callable[[], Any]:
    """Return what makes one registered Gymnasium environment, once its arguments are checked."""
    import gymnasium  # noqa: PLC0415
    from gymnasium.envs.registration import load_env_creator  # noqa: PLC0415

    entry_point = _gymnasium_spec(env_id).entry_point
    if isinstance(entry_point, str):
        entry_point = _construct(env_id, extra, lambda: load_env_creator(entry_point))
    parameters = _parameters(entry_point)
    args = _fitting(env_id, parameters and {**parameters, LIMIT.name: LIMIT}, args)
    name = env_id.removeprefix(HOST_PREFIX)
    # The adapter checks what the environment returns; Gymnasium's checker only warns about it.
    return lambda: gymnasium.make(name, disable_env_checker=True, **args)


def _gymnasium_spec(env_id: str) -> Any:
    import gymnasium  # noqa: PLC0415

    name = env_id.removeprefix(HOST_PREFIX).rpartition(":")[2]
    if name not in gymnasium.registry:
        _register_atari()
    if name not in gymnasium.registry:
        known = [x for x in (*NATIVE, *gymnasium.registry) if not OLD_ATARI.fullmatch(x)]
        raise UsageError(
            f"unknown environment `{env_id}`{_did_you_mean_env(env_id, known)} "
            f"(ours: {', '.join(NATIVE)}; or a Gymnasium id; or `module:Class` for your own)"
        )
    return gymnasium.registry[name]


def _did_you_mean_env(env_id: str, known: Sequence[str]) -> str:
    """Return `, did you mean ...?` for ids of the same name, or else of one like it."""
    newest: dict[str, str] = {}  # in the order in which they are known
    for x in known:
        if _bare(x) == _bare(env_id):
            newest[_bare_id(x)] = max(newest.get(_bare_id(x), x), x, key=_version)
    if newest:
        return f", did you mean {' or '.join(f'`{x}`' for x in list(newest.values())[:3])}?"
    return did_you_mean(env_id, known)


def _bare(env_id: str) -> str:
    """Return an id's name alone: no package, no version."""
    return _bare_id(env_id).rpartition("/")[2].rpartition(":")[2].casefold()


def _version(env_id: str) -> int:
    found = re.search(r"-v(\d+)$", env_id)
    return int(found[1]) if found else 0


def _bare_id(env_id: str) -> str:
    """Return an id without its version."""
    return re.sub(r"-v\d+$", "", env_id)


def _refuse_old_atari(env_id: str) -> None:
    """Refuse Atari's ids before -v5, which show raw frames and differ in what they repeat."""
    import gymnasium  # noqa: PLC0415

    found = OLD_ATARI.fullmatch(env_id)
    known = gymnasium.registry.get(env_id)
    if found is None or (known and not str(known.entry_point).startswith("ale_py")):
        return
    _register_atari()
    name = f"{ATARI_PREFIX}{found[1]}-v5"
    if name in gymnasium.registry:
        raise UsageError(
            f"environment `{env_id}` shows raw frames; for the papers' pictures try {name} "
            f"--env-arg repeat_action_probability={STICKY[found[2]]}, for Gymnasium's own "
            f"{HOST_PREFIX}{env_id}"
        )


def _register_atari() -> None:
    """Have ale-py, where it is installed, tell Gymnasium its ids."""
    with contextlib.suppress(ImportError):
        importlib.import_module("ale_py")


def _extra(env_id: str) -> str:
    """Return the extra of ours that brings what a Gymnasium environment imports, or nothing."""
    entry_point = str(_gymnasium_spec(env_id).entry_point)
    return next((extra for start, extra in EXTRAS.items() if entry_point.startswith(start)), "")


def _own_make(env_id: str, own: type, args: Mapping[str, Any]) -> Callable[[], Any]:
    args = _fitting(env_id, _parameters(own), args)
    return lambda: own(**args)


def _own_class(env_id: str) -> type | None:
    """Return the class a `module:Class` names, or None where `env_id` is no such thing.

    `module:Id-v0` is Gymnasium's way to have a module imported that registers ids.
    """
    module, colon, name = env_id.partition(":")
    if colon and not (module and name):
        raise UsageError(
            f"unknown environment `{env_id}`: write `module:Class` for a class of your own"
        )
    if not colon or env_id in NATIVE or env_id.startswith(PREFIXES):
        return None
    found = _import(env_id, module)
    if not name.isidentifier():
        return None
    own = getattr(found, name, None)
    if not isinstance(own, type):
        classes = [key for key, value in vars(found).items() if isinstance(value, type)]
        raise UsageError(f"`{module}` has no class `{name}`{did_you_mean(name, classes)}")
    if not _is_gymnasium(own) and not _is_native_class(own):
        raise UsageError(
            f"`{env_id}` is no environment: expected a subclass of gymnasium.Env, or a class with "
            f"{', '.join(NATIVE_PARTS)} as in backflip.envs.spec.NativeEnv"
        )
    return own


def _import(env_id: str, module: str) -> Any:
    """Import a module of the current folder or an installed one."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UsageError(f"`{module}` needs `{error.name}`, which is not installed") from error
        raise UsageError(
            f"unknown environment `{env_id}`{did_you_mean(env_id, NATIVE)} "
            f"(no module `{module}` in {Path.cwd()} or among the installed packages)"
        ) from error
    except Exception as error:
        raise UsageError(f"`{module}` cannot be imported: {one_line(error)}") from error


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _is_gymnasium(own: type) -> bool:
    """Return whether a class is a Gymnasium environment, without importing Gymnasium to ask."""
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and issubclass(own, gymnasium.Env)


def _is_native_class(own: type) -> bool:
    return all(hasattr(own, part) for part in NATIVE_PARTS)


def _construct(env_id: str, extra: str, build: Callable[[], Any]) -> Any:
    """Return what `build` builds; whatever it raises becomes one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return build()
    except BackflipError:
        raise
    except Exception as error:
        missing = isinstance(error, ImportError) or type(error).__name__ == "DependencyNotInstalled"
        if missing and extra:
            package = PACKAGES.get(extra, extra)
            raise UsageError(
                f"environment `{env_id}` needs {package}, which is not installed; "
                f"try: pip install 'backflip[{extra}]'"
            ) from error
        newer = _newest(env_id)
        hint = f"; try {newer}" if newer not in ("", env_id) else ""
        raise UsageError(
            f"environment `{env_id}` cannot be made: {one_line(error)}{hint}"
        ) from error


def _newest(env_id: str) -> str:
    """Return the id of the newest version of a Gymnasium environment, or nothing."""
    import gymnasium  # noqa: PLC0415

    same = [x for x in gymnasium.registry if _bare_id(x) == _bare_id(env_id)]
    return max(same, key=_version, default="")


def _parameters(target: Any) -> dict[str, inspect.Parameter] | None:
    """Return the named parameters a class takes, by way of `**kwargs` its bases'; None: any."""
    found: dict[str, inspect.Parameter] = {}
    classes = target.__mro__ if isinstance(target, type) else [target]
    for part in classes:
        if getattr(part, "__init__", None) is object.__init__:
            return found
        signature = inspect.signature(part.__init__ if isinstance(part, type) else part)
        named = [p for p in signature.parameters.values() if p.kind in NAMED]
        # What a base class requires, the class that passes `**kwargs` on to it gives it itself.
        named = [p for p in named if part is target or p.default is not p.empty]
        found = {p.name: p for p in named if p.name not in UNHELPFUL} | found
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values()):
            return found
    return None


def _fitting(
    env_id: str, parameters: dict[str, inspect.Parameter] | None, args: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments of the types a constructor wants, whole numbers as floats where it does.

    Raises:
        UsageError: it has no such parameters or wants other types; all of them at once.
    """
    if parameters is None:
        return dict(args)
    unknown = [f"`{key}`{did_you_mean(key, parameters)}" for key in args if key not in parameters]
    if unknown:
        simple = [p for p in parameters.values() if _kind(p) or p.default is p.empty]
        accepted = ", ".join(f"{p.name}={_example(p)}" for p in simple) or "none"
        raise UsageError(
            f"environment `{env_id}` does not take --env-arg {'; '.join(unknown)}; "
            f"accepted: {accepted}"
        )
    wrong = [
        f"`{key}` must be {_wanted(parameters[key])}, got {value!r}; try {key}="
        f"{_example(parameters[key])}"
        for key, value in args.items()
        if not _fits(value, parameters[key])
    ]
    if wrong:
        raise UsageError(f"environment `{env_id}`: --env-arg {'; '.join(wrong)}")
    return {k: float(v) if _kind(parameters[k]) is float else v for k, v in args.items()}


def _fits(value: Any, parameter: inspect.Parameter) -> bool:
    kind = _kind(parameter)
    if kind is None or isinstance(value, bool):
        return kind in (None, bool)
    return isinstance(value, (int, float) if kind is float else kind)


def _kind(parameter: inspect.Parameter) -> type | None:
    """Return which of `WANTED` a parameter takes, by its annotation or else its default."""
    annotation = parameter.annotation
    if isinstance(annotation, str):  # a module with postponed annotations
        annotation = {kind.__name__: kind for kind in WANTED}.get(annotation.partition("[")[0])
    annotation = typing.get_origin(annotation) or annotation
    if annotation in WANTED:
        return annotation
    default = type(parameter.default)
    return float if default is int else default if default in WANTED else None


def _wanted(parameter: inspect.Parameter) -> str:
    kind = _kind(parameter)
    return WANTED[kind] if kind else "a value"


def _example(parameter: inspect.Parameter) -> str:
    if parameter.default in (None, inspect.Parameter.empty):
        return _wanted(parameter).upper().replace(" ", "_")
    if isinstance(parameter.default, tuple):
        return ",".join(map(str, parameter.default))
    default = parameter.default
    return str(default).lower() if isinstance(default, bool) else str(default)


def _check_native(env_id: str, env: Any) -> None:
    """Refuse a person's own native environment whose parts do not keep the interface."""
    import jax  # noqa: PLC0415

    from backflip.core.spec import EnvSpec  # noqa: PLC0415

    if not isinstance(env.spec, EnvSpec):
        raise UsageError(f"environment `{env_id}`: `spec` must be an EnvSpec, got {env.spec!r}")
    try:
        wrong = _broken_promises(env, jax.random.key(0))
    except Exception as error:
        raise UsageError(f"environment `{env_id}` cannot be traced: {one_line(error)}") from error
    if wrong:
        raise UsageError(f"environment `{env_id}`: {'; '.join(wrong)}")


def _broken_promises(env: "NativeEnv", key: Any) -> list[str]:
    """Return where shapes and dtypes differ from the spec's, without running anything."""
    import jax  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    from backflip.core.spec import Discrete  # noqa: PLC0415

    one, box = env.spec.action, env.spec.observation
    action = (np.int32(0) if isinstance(one, Discrete) else np.zeros(one.shape, one.dtype),)
    state = jax.eval_shape(env.reset, key)
    seen = jax.eval_shape(env.observe, state)
    after = jax.eval_shape(env.step, state, *action, key)
    flag = jax.ShapeDtypeStruct((), bool)
    pairs = [
        ("`observe`", seen, jax.ShapeDtypeStruct(box.shape, box.dtype)),
        ("`step`'s state", after.state, state),
        ("`step`'s reward", after.reward, jax.ShapeDtypeStruct((), np.float32)),
        ("`step`'s terminated", after.terminated, flag),
        ("`step`'s truncated", after.truncated, flag),
    ]
    spaces = [("observation", box.shape, not env.spec.is_pixels)]
    spaces += [] if isinstance(one, Discrete) else [("action", one.shape, True)]
    return [
        f"{name} is {_brief(got)}, expected {_brief(expected)}"
        for name, got, expected in pairs
        if _brief(got) != _brief(expected)
    ] + [
        f"its {role} has the shape {shape}; return a vector, as `x.reshape(-1)` does, or an image "
        "(uint8: height, width, channels)"
        for role, shape, vector in spaces
        if vector and len(shape) != 1
    ]


def _brief(tree: Any) -> str:
    """Return shapes and dtypes of a tree as short text."""
    import jax  # noqa: PLC0415

    leaves, structure = jax.tree.flatten(tree)
    shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves]
    return str(jax.tree.unflatten(structure, shapes)).replace("'", "")


def one_line(error: Exception) -> str:
    """Return kind and message of an error as one line of at most 200 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def _value(text: str) -> EnvArg:
    if "," in text:
        return tuple(_scalar(part) for part in text.removesuffix(",").split(","))
    return _scalar(text)


def _scalar(text: str) -> int | float | bool | str:
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if math.isfinite(value):
            return int(value) if WHOLE.fullmatch(text) else value
    return text
