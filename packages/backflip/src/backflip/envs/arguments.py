"""Arguments of environments: parse `--env-arg`, and check values against constructor signatures."""

import inspect
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from runshelf.errors import UsageError, did_you_mean, shown
from runshelf.key_values import key_values

EnvArg = int | float | bool | str | tuple[int | float | bool | str, ...]
WHOLE = re.compile(r"[-+]?\d+e\+?\d{1,2}", re.IGNORECASE)  # an integer such as 1e5
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
LIMIT = inspect.Parameter(
    "max_episode_steps", inspect.Parameter.KEYWORD_ONLY, default=500, annotation=int
)
PENALTY = inspect.Parameter(
    "penalty", inspect.Parameter.KEYWORD_ONLY, default="threshold", annotation=str
)
PENALTIES = ("threshold", "smooth")
HIDDEN = ("self", "render_mode")  # parameters that `--env-arg` cannot set
TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "values separated by commas",
}
EXAMPLES = {bool: "true", int: "1", float: "1.0", str: "text", tuple: "1,2", None: "1"}


def parse_env_args(texts: Sequence[str]) -> dict[str, EnvArg]:
    """Parse `KEY=VALUE` texts; values are numbers, true/false, comma-separated tuples, or text.

    Raises:
        UsageError: a text is not `KEY=VALUE`, or a key is repeated.
    """
    texts_of = key_values("--env-arg", texts, "goal=40,60", identifiers=True)
    return {key: parse_value(text) for key, text in texts_of.items()}


def time_limit_only(env_id: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Check arguments of an environment whose only argument is the time limit."""
    return limit_and(env_id, {}, args)


def limit_and(
    env_id: str, parameters: Mapping[str, inspect.Parameter], args: Mapping[str, Any]
) -> dict[str, Any]:
    """Check arguments of an environment that takes the time limit and other parameters."""
    from backflip.core.settings import LARGEST_COUNT  # noqa: PLC0415  (importing NumPy is slow)

    args = fitting(env_id, {LIMIT.name: LIMIT, **parameters}, args)
    if not 1 <= args.get(LIMIT.name, 1) <= LARGEST_COUNT:
        raise UsageError(
            f"--env-arg `{LIMIT.name}` must be at least 1 and at most {LARGEST_COUNT:,}, got "
            f"{args[LIMIT.name]}"
        )
    return args


def fixed_horizon_only(env_id: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Check arguments of a MuJoCo task with a fixed horizon: the time limit and the penalty."""
    args = limit_and(env_id, {PENALTY.name: PENALTY}, args)
    if args.get(PENALTY.name, PENALTY.default) not in PENALTIES:
        raise UsageError(
            f"--env-arg `{PENALTY.name}` must be `threshold` or `smooth`, got "
            f"{shown(args[PENALTY.name])}; try --env-arg penalty=smooth"
        )
    return args


def with_limit(
    parameters: dict[str, inspect.Parameter] | None,
) -> dict[str, inspect.Parameter] | None:
    """Return the parameters of an environment and the time limit, which every one accepts."""
    return None if parameters is None else {**parameters, LIMIT.name: LIMIT}


def refuse_missing(
    env_id: str, parameters: dict[str, inspect.Parameter] | None, args: Mapping[str, Any]
) -> None:
    """Check that all required arguments are given.

    Raises:
        UsageError: lists all missing arguments, each with an example.
    """
    required = [p for p in (parameters or {}).values() if p.default is p.empty]
    missing = [p for p in required if p.name not in args]
    if missing:
        names = ", ".join(f"`{p.name}`" for p in missing)
        typed = " ".join(f"--env-arg {p.name}={_example(p)}" for p in missing)
        raise UsageError(f"environment `{env_id}` requires the arguments {names}; try {typed}")


def fitting(
    env_id: str, parameters: dict[str, inspect.Parameter] | None, args: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments after a check against a constructor's parameters.

    Integers are converted to float where the parameter is a float.

    Raises:
        UsageError: lists all unknown names or wrong types.
    """
    if parameters is None:
        return dict(args)
    unknown = [f"`{key}`{did_you_mean(key, parameters)}" for key in args if key not in parameters]
    if unknown:
        accepted = ", ".join(filter(None, map(_accepted, parameters.values()))) or "none"
        raise UsageError(
            f"environment `{env_id}` does not take --env-arg {'; '.join(unknown)}; "
            f"accepted: {accepted}"
        )
    wrong = [
        f"`{key}` must be {_wanted(parameters[key])}, got {shown(value)}; try {key}="
        f"{_example(parameters[key])}"
        for key, value in args.items()
        if not _fits(value, parameters[key])
    ]
    if wrong:
        raise UsageError(f"environment `{env_id}`: --env-arg {'; '.join(wrong)}")
    return {k: _converted(v, parameters[k]) for k, v in args.items()}


def _accepted(parameter: inspect.Parameter) -> str:
    """Return an argument with its default, or an example; empty if it cannot be typed."""
    name, default = parameter.name, parameter.default
    if default is parameter.empty:
        return f"{name} (required, such as {_example(parameter)})"
    if default is None and name not in HIDDEN:
        return name
    return f"{name}={_example(parameter)}" if _kind(parameter) else ""


def _converted(value: Any, parameter: inspect.Parameter) -> Any:
    """Return a value as the parameter's type; a number for `size=5` keeps its type."""
    untyped = type(parameter.default) is int and parameter.annotation is parameter.empty
    return value if untyped or _kind(parameter) is not float else float(value)


def parameters_of(target: Any) -> dict[str, inspect.Parameter] | None:
    """Return a class's named parameters, with its bases' if it has `**kwargs`; None: unlimited."""
    found: dict[str, inspect.Parameter] = {}
    classes = target.__mro__ if isinstance(target, type) else [target]
    for part in classes:
        if getattr(part, "__init__", None) is object.__init__:
            return found
        signature = inspect.signature(part.__init__ if isinstance(part, type) else part)
        named = [p for p in signature.parameters.values() if p.kind in NAMED]
        # A class that passes `**kwargs` to a base class gives it the required arguments itself.
        named = [p for p in named if part is target or p.default is not p.empty]
        found = {p.name: p for p in named if p.name not in HIDDEN} | found
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values()):
            return found
    return None


def _fits(value: Any, parameter: inspect.Parameter) -> bool:
    kind = _kind(parameter)
    if kind is None or isinstance(value, bool):
        return kind in (None, bool)
    return isinstance(value, (int, float) if kind is float else kind)


def _kind(parameter: inspect.Parameter) -> type | None:
    """Return which of `TYPE_NAMES` a parameter has, from its annotation or its default value."""
    annotation = parameter.annotation
    if _is_union(annotation):
        return None
    if isinstance(annotation, str):  # postponed annotations
        annotation = {kind.__name__: kind for kind in TYPE_NAMES}.get(annotation.partition("[")[0])
    annotation = typing.get_origin(annotation) or annotation
    if annotation in TYPE_NAMES:
        return annotation
    default = type(parameter.default)
    return float if default is int else default if default in TYPE_NAMES else None


def _is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union; such values are passed without a check."""
    if isinstance(annotation, str):  # postponed annotations
        return "|" in annotation or "Optional[" in annotation or "Union[" in annotation
    return typing.get_origin(annotation) in (types.UnionType, typing.Union)


def _wanted(parameter: inspect.Parameter) -> str:
    kind = _kind(parameter)
    return TYPE_NAMES[kind] if kind else "a value"


def _example(parameter: inspect.Parameter) -> str:
    if parameter.default in (None, inspect.Parameter.empty):
        return EXAMPLES[_kind(parameter)]
    if isinstance(parameter.default, tuple):
        return ",".join(map(str, parameter.default))
    default = parameter.default
    return str(default).lower() if isinstance(default, bool) else str(default)


def parse_value(text: str) -> EnvArg:
    """Return a number, true or false, a tuple of those for `1,2`, or the text itself."""
    if "," in text:
        return tuple(_scalar(part) for part in text.removesuffix(",").split(","))
    return _scalar(text)


def _scalar(text: str) -> int | float | bool | str:
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    for kind in (int, float):
        try:
            value = kind(text)
            finite = math.isfinite(value)
        except (ValueError, OverflowError):  # no number, or one beyond the range of floats
            continue
        if finite:
            return int(value) if WHOLE.fullmatch(text) else value
    return text
