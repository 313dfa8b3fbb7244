"""L03: the interface of environments before Gymnasium 0.26."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    MADE_FROM,
    Function,
    Scope,
    Source,
    assignments,
    last_word,
    made_by,
    parameters,
    walk,
    written,
)

Key = tuple[Scope, str]  # a name, and where it belongs

PASSED = ("print", "append", "len", "isinstance", "type")  # functions of pairs, too
PAIR = {"reset": 2}
NEW = {"step": 5, **PAIR}  # values that methods return since 0.26
WRAPPERS = tuple(f"gymnasium.{kind}Wrapper" for kind in ("", "Observation", "Reward", "Action"))
MAKERS = ("gymnasium.make", "gymnasium.make_vec", "gymnasium.vector.", "gymnasium.wrappers.")


def _old_interface(source: Source) -> Iterator[Hit]:
    if "gymnasium" not in {name.partition(".")[0] for name in source.imports.values()}:
        return  # `import gym` may be the old one
    made = _environments(source, source.scopes, _own_makers(source))
    made |= _given_environments(source, made)
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            match target, value:
                case (
                    ast.Tuple(elts=[_, _, _, _] as names),
                    ast.Call(func=ast.Attribute(value=env, attr="step")),
                ) if (
                    _key(source, env) in made or _is_inside_new(source, env, NEW)
                ) and not _takes_the_rest(names):
                    yield Hit(statement, f"`{ast.unparse(env)}.step` returns five values, not four")
                case (
                    ast.Tuple(elts=[_, _, _, _] as names),
                    ast.Name(id=result),
                ) if result in _results(source, scope, made) and not _takes_the_rest(names):
                    yield Hit(statement, f"`{result}` has the five values of `step`, not four")
                case (
                    ast.Name() | ast.Attribute(),
                    ast.Call(func=ast.Attribute(value=env, attr="reset")),
                ) if (
                    _key(source, env) in made
                    or (_is_inside_new(source, env, PAIR) and not _is_returned(scope, target))
                ) and _is_used_as_observation(scope, target):
                    seen = f"`{ast.unparse(env)}.reset` returns an observation and a dictionary"
                    yield Hit(statement, seen)
                case (
                    ast.Name() | ast.Attribute() as held,
                    ast.IfExp(body=first, orelse=second),
                ) if len(held_by := _states(source, (first, second), made)) == 1:
                    seen = (
                        f"`{written(held)}` is `{held_by[0]}.reset()`, which is a pair, or a state"
                    )
                    yield Hit(statement, seen)
                case _:
                    pass
    for call, _ in source.calls():
        given = isinstance(source.parents[call], ast.Call) and _resets(source, call, made)
        if given and _becomes_a_state(source, call):
            yield Hit(call, "what `reset` returns, a pair, is made an array")
    yield from _whole_resets(source, made)


def _is_inside_new(source: Source, env: ast.expr, sizes: dict[str, int]) -> bool:
    """Return whether a value is the environment inside of a wrapper that has the new interface.

    One of its methods itself returns as many values as `sizes` says.
    """
    body = source.class_of(env)
    if body is None or (written(env) != "self.env" and made_by(env) != "super"):
        return False
    return any(source.dotted(one) in WRAPPERS for one in body.bases) and any(
        isinstance(one, ast.Return)
        and isinstance(one.value, ast.Tuple)
        and len(one.value.elts) == sizes.get(method.name)
        for method in body.body
        if isinstance(method, FUNCTIONS)
        for one in walk(method)
    )


def _is_returned(scope: Scope, target: ast.expr) -> bool:
    """Return whether a function returns a name as it is."""
    returned = (one.value for one in walk(scope) if isinstance(one, ast.Return) and one.value)
    return written(target) in map(written, returned)


def _whole_resets(source: Source, made: set[Key]) -> Iterator[Hit]:
    """Find own functions that return all that `reset` does, and whose value is then a state."""
    for scope in source.scopes:
        if isinstance(scope, ast.Module):
            continue
        returned = [one for one in walk(scope) if isinstance(one, ast.Return)]
        if returned and all(_resets(source, one.value, made) for one in returned):
            calls = _calls_of_own(source, scope)
            if calls and all(_becomes_a_state(source, call) for call in calls):
                seen = f"`{scope.name}` returns an observation and a dictionary, used as one state"
                yield Hit(returned[0], seen)


def _resets(source: Source, value: ast.expr | None, made: set[Key]) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=env, attr="reset")):
            return _key(source, env) in made
        case _:
            return False


def _calls_of_own(source: Source, function: Function) -> list[ast.Call]:
    """Return the calls of a function; none if another one has its name."""
    own = [one for one in source.scopes if getattr(one, "name", "") == function.name]
    called = source.calls_of.get(function.name.lower(), []) if len(own) == 1 else []
    return [one for one in called if written(one.func).rpartition(".")[2] == function.name]


def _becomes_a_state(source: Source, call: ast.Call) -> bool:
    """Return whether a value is made an array, or gets a name that is used as a state.

    That name is given to functions, and never taken apart.
    """
    parent = source.parents[call]
    if isinstance(parent, ast.IfExp) and parent.test is not call:
        parent = source.parents[parent]
    match parent:
        case ast.Call(func=ast.Attribute(attr=attr), args=[given, *_]) if given is call:
            return attr in MADE_FROM
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            home = source.home(target, written(target))
            return _is_used_as_observation(home, target) and _is_given(source, home, target)
        case _:
            return False


def _is_given(source: Source, home: Scope, target: ast.expr) -> bool:
    """Return whether a name is an argument of a call that converts it, or acts by it."""
    return any(
        written(one) == written(target)
        for call, _ in source.calls(None if isinstance(home, ast.Module) else home)
        for one in call.args[:1]
        if last_word(call.func) not in PASSED
    )


def _states(source: Source, branches: tuple[ast.expr, ...], made: set[Key]) -> list[str]:
    """Return the environments that one of two branches resets, where the other has a state."""
    return [
        written(one.func.value)
        for one, other in (branches, branches[::-1])
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
        if _resets(source, one, made) and _is_stepped(source, other)
    ]


def _is_stepped(source: Source, node: ast.expr) -> bool:
    """Return whether a name is the first of the five values of `step`."""
    return any(
        isinstance(target, ast.Tuple)
        and len(target.elts) == 5
        and written(target.elts[0]) == written(node) != ""
        and made_by(value).endswith(".step")
        for target, value, _ in assignments(source.function_of(node))
    )


def _results(source: Source, scope: Scope, made: set[Key]) -> set[str]:
    """Return the names that hold all that `step` of an environment returns, and nothing else."""
    found: dict[str, list[bool]] = {}
    for target, value, _ in assignments(scope):
        match value:
            case ast.Call(func=ast.Attribute(value=env, attr="step")):
                found.setdefault(written(target), []).append(_key(source, env) in made)
            case _:
                found.setdefault(written(target), []).append(False)
    return {name for name, steps in found.items() if name and all(steps)}


def _takes_the_rest(names: list[ast.expr]) -> bool:
    """Return whether one name of a tuple, `*rest`, takes any number of values."""
    return any(isinstance(one, ast.Starred) for one in names)


def _key(source: Source, node: ast.expr) -> Key:
    """Return what a name is, and the function or module that it belongs to."""
    name = written(node)
    return source.home(node, name), name


def _environments(source: Source, scopes: list[Scope], makers: set[str]) -> set[Key]:
    """Return the names that hold environments that Gymnasium or `makers` made, and nothing else.

    What a parameter holds is not known.
    """
    made: dict[Key, bool] = {}
    for scope in scopes:
        for target, value, _ in assignments(scope):
            key = _key(source, target)
            ours = _is_made(source, value, makers) and not _is_parameter(key)
            made[key] = made.get(key, True) and ours
    return {key for key, only in made.items() if key[1] and only}


def _is_parameter(key: Key) -> bool:
    home, first = key[0], key[1].partition(".")[0]
    return not isinstance(home, ast.Module) and first in {one.arg for one in parameters(home)}


def _given_environments(source: Source, made: set[Key]) -> set[Key]:
    """Return the parameters that are annotated as an environment, or get one in every call."""
    found: set[Key] = set()
    for scope in source.scopes:
        if isinstance(scope, ast.Module):
            continue
        own = {"self", "cls", *(written(target) for target, _, _ in assignments(scope))}
        for one in parameters(scope):
            if one.arg not in own and _holds_environment(source, scope, one, made):
                found.add((scope, one.arg))
    return found


def _holds_environment(source: Source, function: Function, one: ast.arg, made: set[Key]) -> bool:
    if one.annotation is not None and source.dotted(one.annotation) == "gymnasium.Env":
        return True
    values = list(given_for(source, function, one.arg))
    return bool(values) and all(
        _key(source, value) in made or _is_made(source, value, set()) for value in values
    )


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
            one is not None and (_key(source, one) in made or _is_made(source, one, set()))
            for one in returned
        ):
            found.add(body.name)
    return found


def _is_used_as_observation(scope: ast.AST, target: ast.expr) -> bool:
    """Return whether the result of a reset is kept, and never taken apart."""
    name = written(target)
    return not name.startswith("_") and not any(
        _takes_apart(node, name) for node in ast.walk(scope)
    )


def _takes_apart(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(slice=ast.Constant(value=None)):
            return False  # of an array
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
