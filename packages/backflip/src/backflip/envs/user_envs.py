"""User environments, `module:Class` or `module:function`: load them and check their interface.

Loading one imports neither JAX nor Gymnasium unless its module does.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backflip.envs.ids import NATIVE, PREFIXES
from runshelf.errors import UsageError, did_you_mean, one_line

if TYPE_CHECKING:
    from backflip.core.spaces import Box, Discrete
    from backflip.envs.spec import NativeEnv

NATIVE_PARTS = ("spec", "reset", "step", "observe")


def user_env(env_id: str) -> Callable[..., Any] | None:
    """Return the class or function that `module:Name` names; None for any other id.

    `module:Id-v0`, with which Gymnasium imports a module that registers ids, gives None.

    Raises:
        UsageError: it cannot be loaded, or the class is not an environment.
    """
    module, colon, name = env_id.partition(":")
    if colon and not (module and name):
        raise UsageError(
            f"unknown environment `{env_id}`: write `module:Class` for a class of your own, or "
            "`module:function` for a function that returns an environment"
        )
    if module.startswith("."):
        raise UsageError(
            f"unknown environment `{env_id}`: the module must be a name such as my_envs, not a path"
        )
    if not colon or env_id in NATIVE or env_id.startswith(PREFIXES):
        return None
    found = _import(env_id, module)
    if not name.isidentifier():
        return None
    own = getattr(found, name, None)
    if not callable(own):
        known = [key for key, value in vars(found).items() if callable(value)]
        raise UsageError(f"`{module}` has no class or function `{name}`{did_you_mean(name, known)}")
    if isinstance(own, type) and not is_gymnasium(own) and not _is_native_class(own):
        raise UsageError(
            f"`{env_id}` is not an environment: expected a subclass of gymnasium.Env, a class "
            f"with {', '.join(NATIVE_PARTS)} as in backflip.envs.spec.NativeEnv, or a function "
            "that returns a gymnasium.Env"
        )
    return own


def is_gymnasium(own: Callable[..., Any]) -> bool:
    """Return whether a class or function makes Gymnasium environments.

    Does not import Gymnasium. A function never makes an environment in JAX.
    """
    if not isinstance(own, type):
        return True
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and issubclass(own, gymnasium.Env)


def made_by(env_id: str, own: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    """Return a new environment of a user's class or function.

    Raises:
        UsageError: a function returned something else.
    """
    import gymnasium  # noqa: PLC0415

    env = own(**args)
    if isinstance(env, gymnasium.Env):
        return env
    kind = type(env).__name__
    if isinstance(env, gymnasium.vector.VectorEnv):
        instead = "one gymnasium.Env; backflip makes the batch"
    elif _is_native_class(type(env)):
        name = f"{env_id.partition(':')[0]}:{kind}"
        instead = f"a gymnasium.Env; name the class itself for an environment in JAX, as in {name}"
    else:
        instead = "a gymnasium.Env"
    raise UsageError(f"`{env_id}` returned {_a(kind)}, expected {instead}")


def check_native(env_id: str, env: Any) -> None:
    """Check that a user's native environment implements the interface.

    Raises:
        UsageError: lists all violations.
    """
    import jax  # noqa: PLC0415

    from backflip.core.spec import EnvSpec  # noqa: PLC0415

    try:
        spec = env.spec
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(f"environment `{env_id}`: `spec` raised {one_line(error)}") from error
    if not isinstance(spec, EnvSpec):
        raise UsageError(f"environment `{env_id}`: `spec` must be an EnvSpec, got {spec!r}")
    try:
        wrong = _wrong_shapes(env, jax.random.key(0)) + _invalid_action_space(spec.action)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(f"environment `{env_id}` cannot be traced: {one_line(error)}") from error
    if wrong:
        raise UsageError(f"environment `{env_id}`: {'; '.join(wrong)}")


def _import(env_id: str, module: str) -> Any:
    """Import a module from the current folder or an installed one."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UsageError(f"`{module}` needs `{error.name}`, which is not installed") from error
        alike = ", ".join(x for x in NATIVE if x.startswith(f"{module}:"))
        no_module = f"no module `{module}` in {Path.cwd()} or among the installed packages"
        raise UsageError(
            f"unknown environment `{env_id}`{did_you_mean(env_id, NATIVE)} "
            f"({f'known: {alike}' if alike else no_module})"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # includes SystemExit of a script without a `__main__` guard
        raise UsageError(f"`{module}` cannot be imported: {one_line(error)}") from error


def _a(kind: str) -> str:
    return "nothing" if kind == "NoneType" else f"an object of the class {kind}"


def _is_native_class(own: type) -> bool:
    return all(hasattr(own, part) for part in NATIVE_PARTS)


def _wrong_shapes(env: "NativeEnv", key: Any) -> list[str]:
    """Return where shapes and dtypes differ from the spec, found by tracing without running."""
    import jax  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    from backflip.core.spaces import Discrete  # noqa: PLC0415

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
    spaces = [("observation", box.shape, not env.spec.is_image)]
    spaces += [] if isinstance(one, Discrete) else [("action", one.shape, True)]
    return [
        f"{name} is {_brief(got)}, expected {_brief(expected)}"
        for name, got, expected in pairs
        if _brief(got) != _brief(expected)
    ] + [
        f"its {role} has the shape {shape}; use a vector, as from `x.reshape(-1)`, or an image "
        "(uint8: height, width, channels)"
        for role, shape, vector in spaces
        if 0 in shape or (vector and len(shape) != 1)
    ]


def _invalid_action_space(action: "Box | Discrete") -> list[str]:
    """Return why an action space is not supported; a `Box` may be unbounded."""
    from backflip.core.spaces import Discrete  # noqa: PLC0415
    from backflip.core.spec import LARGEST_BOUND, LARGEST_DISCRETE, has_room  # noqa: PLC0415

    if isinstance(action, Discrete):
        if 1 <= action.n <= LARGEST_DISCRETE:
            return []
        return [f"it has {action.n:,} actions, expected 1 to {LARGEST_DISCRETE:,}"]
    low, high = action.low[action.bounded], action.high[action.bounded]
    if not low.size or has_room(low, high):
        return []
    return [
        f"its actions have the bounds {low.tolist()} and {high.tolist()}, expected bounds of at "
        f"most {LARGEST_BOUND:g}, low below high, or none"
    ]


def _brief(tree: Any) -> str:
    """Return the shapes and dtypes of a tree as short text."""
    import jax  # noqa: PLC0415

    leaves, structure = jax.tree.flatten(tree)
    shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves]
    return str(jax.tree.unflatten(structure, shapes)).replace("'", "")
