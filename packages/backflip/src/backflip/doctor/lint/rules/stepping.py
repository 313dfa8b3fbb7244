"""L03: the interface of environments before Gymnasium 0.26."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Scope, Source, assignments, walk, written

MAKERS = ("gymnasium.make", "gymnasium.make_vec", "gymnasium.vector.", "gymnasium.wrappers.")


def _old_interface(source: Source) -> Iterator[Hit]:
    if "gymnasium" not in {name.partition(".")[0] for name in source.imports.values()}:
        return  # `import gym` may be the old one
    made = _environments(source, source.scopes, _own_makers(source))
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            match target, value:
                case (
                    ast.Tuple(elts=[_, _, _, _] as names),
                    ast.Call(func=ast.Attribute(value=env, attr="step")),
                ) if written(env) in made and not _takes_the_rest(names):
                    yield Hit(statement, f"`{written(env)}.step` returns five values, not four")
                case (
                    ast.Name() | ast.Attribute(),
                    ast.Call(func=ast.Attribute(value=env, attr="reset")),
                ) if written(env) in made and _is_used_as_observation(scope, target):
                    seen = f"`{written(env)}.reset` returns an observation and a dictionary"
                    yield Hit(statement, seen)
                case _:
                    pass


def _takes_the_rest(names: list[ast.expr]) -> bool:
    """Return whether one name of a tuple, `*rest`, takes any number of values."""
    return any(isinstance(one, ast.Starred) for one in names)


def _environments(source: Source, scopes: list[Scope], makers: set[str]) -> set[str]:
    """Return the names that hold environments that Gymnasium or `makers` made, and nothing else."""
    made: dict[str, bool] = {}
    for scope in scopes:
        for target, value, _ in assignments(scope):
            ours = _is_made(source, value, makers)
            made[written(target)] = made.get(written(target), True) and ours
    return {name for name, only in made.items() if name and only}


def _is_made(source: Source, value: ast.expr | None, makers: set[str]) -> bool:
    name = source.dotted(value.func) if isinstance(value, ast.Call) else ""
    return name.startswith(MAKERS) or name in makers


def _own_makers(source: Source) -> set[str]:
    """Return the functions of a program that return environments of Gymnasium, and no others."""
    found: set[str] = set()
    for body in source.tree.body:
        if not isinstance(body, ast.FunctionDef) or body.decorator_list:
            continue
        made = _environments(source, [body], set())
        returned = [one.value for one in walk(body) if isinstance(one, ast.Return)]
        if returned and all(
            one is not None and (written(one) in made or _is_made(source, one, set()))
            for one in returned
        ):
            found.add(body.name)
    return found


def _is_used_as_observation(scope: ast.AST, target: ast.expr) -> bool:
    """Return whether the result of a reset is never taken apart."""
    name = written(target)
    return not any(_takes_apart(node, name) for node in ast.walk(scope))


def _takes_apart(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return written(value) == name
        case ast.Assign(targets=[ast.Tuple()], value=value):
            return written(value) == name
        case _:
            return False


RULES = (
    Rule(
        "L03",
        "four values of `step`, or one of `reset`",
        "Since Gymnasium 0.26 `step` returns observation, reward, terminated, truncated and info, "
        "and `reset` returns observation and info: the program fails, or learns from a tuple.",
        "`obs, reward, terminated, truncated, info = env.step(action)` and "
        "`obs, info = env.reset(seed=seed)`.",
        "Gymnasium, migration guide",
        _old_interface,
    ),
)
