"""Arguments of environments: what a person types, and what a constructor takes."""

import inspect
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from runshelf.errors import UsageError, did_you_mean

EnvArg = int | float | bool | str | tuple[int | float | bool | str, ...]
WHOLE = re.compile(r"[-+]?\d+e\+?\d{1,2}", re.IGNORECASE)  # a number such as 1e5
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
LIMIT = inspect.Parameter(
    "max_episode_steps", inspect.Parameter.KEYWORD_ONLY, default=500, annotation=int
)
UNHELPFUL = ("self", "render_mode")  # parameters that no `--env-arg` is for
WANTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "values with commas between",
}
EXAMPLES = {bool: "true", int: "1", float: "1.0", str: "text", tuple: "1,2", None: "1"}


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


def limited(env_id: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of which there can be only a time limit."""
    from backflip.core.settings import LARGEST_COUNT  # noqa: PLC0415  (NumPy takes a while to import)

    args = fitting(env_id, {LIMIT.name: LIMIT}, args)
    if not 1 <= args.get(LIMIT.name, 1) <= LARGEST_COUNT:
        raise UsageError(
            f"--env-arg `{LIMIT.name}` must be at least 1 and at most {LARGEST_COUNT:,}, got "
            f"{args[LIMIT.name]}"
        )
    return args


def with_limit(
    parameters: dict[str, inspect.Parameter] | None,
) -> dict[str, inspect.Parameter] | None:
    """Return the parameters of an environment, and a time limit, which any may be given."""
    return None if parameters is None else {**parameters, LIMIT.name: LIMIT}


def refuse_missing(
    env_id: str, parameters: dict[str, inspect.Parameter] | None, args: Mapping[str, Any]
) -> None:
    """Refuse to make what a constructor cannot make without more arguments.

    Raises:
        UsageError: all that are missing, with an example of each.
    """
    required = [p for p in (parameters or {}).values() if p.default is p.empty]
    missing = [p for p in required if p.name not in args]
    if missing:
        names = ", ".join(f"`{p.name}`" for p in missing)
        typed = " ".join(f"--env-arg {p.name}={_example(p)}" for p in missing)
        raise UsageError(f"environment `{env_id}` cannot be made without {names}; try {typed}")


def fitting(
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
    return {k: _as_taken(v, parameters[k]) for k, v in args.items()}


def _as_taken(value: Any, parameter: inspect.Parameter) -> Any:
    """Return a value as a constructor takes it; a number for `size=5` stays as it was typed."""
    whole = type(parameter.default) is int and parameter.annotation is parameter.empty
    return value if whole or _kind(parameter) is not float else float(value)


def parameters_of(target: Any) -> dict[str, inspect.Parameter] | None:
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


def _fits(value: Any, parameter: inspect.Parameter) -> bool:
    kind = _kind(parameter)
    if kind is None or isinstance(value, bool):
        return kind in (None, bool)
    return isinstance(value, (int, float) if kind is float else kind)


def _kind(parameter: inspect.Parameter) -> type | None:
    """Return which of `WANTED` a parameter takes, by its annotation or else its default."""
    annotation = parameter.annotation
    if _is_union(annotation):
        return None
    if isinstance(annotation, str):  # a module with postponed annotations
        annotation = {kind.__name__: kind for kind in WANTED}.get(annotation.partition("[")[0])
    annotation = typing.get_origin(annotation) or annotation
    if annotation in WANTED:
        return annotation
    default = type(parameter.default)
    return float if default is int else default if default in WANTED else None


def _is_union(annotation: Any) -> bool:
    """Return whether one of several types is taken: what is typed is passed on as it is then."""
    if isinstance(annotation, str):  # a module with postponed annotations
        return "|" in annotation or "Optional[" in annotation or "Union[" in annotation
    return typing.get_origin(annotation) in (types.UnionType, typing.Union)


def _wanted(parameter: inspect.Parameter) -> str:
    kind = _kind(parameter)
    return WANTED[kind] if kind else "a value"


def _example(parameter: inspect.Parameter) -> str:
    if parameter.default in (None, inspect.Parameter.empty):
        return EXAMPLES[_kind(parameter)]
    if isinstance(parameter.default, tuple):
        return ",".join(map(str, parameter.default))
    default = parameter.default
    return str(default).lower() if isinstance(default, bool) else str(default)


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
