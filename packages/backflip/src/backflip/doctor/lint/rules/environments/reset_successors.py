"""Part of L04: a successor that is overwritten by a reset before it is stored."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.own_stores import rows_written
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    STATES,
    Scope,
    Source,
    arguments,
    assignments,
    has_word,
    is_of_next,
    names_in,
    rest_of_block,
    unconverted,
    walk,
    written,
)

FEWEST = 4  # parts of a transition
INTERFACE = ("step", "reset")  # an environment that resets itself returns the state after that
Step = tuple[ast.stmt, list[ast.expr]]  # and the five names that it sets


def reset_successors(source: Source) -> Iterator[Hit]:
    """Find `new, r, ... = env.step(a)`, `if over: new = env.reset()[0]`, `store(old, a, r, new)`.

    A row with `terminated or truncated` is masked there, and that is another mistake.
    """
    for scope in source.scopes:
        if getattr(scope, "name", "") in INTERFACE:
            continue
        for step, names in _steps(scope):
            reset = _reset_after(source, step, names)
            stored = reset and _stored_after(source, scope, reset, names)
            if stored:
                new = written(names[0])
                yield Hit(stored, f"`{new}` is the state after the reset where an episode ended")


def _steps(scope: Scope) -> Iterator[Step]:
    """Yield where a scope steps an environment, with the five names."""
    for target, value, statement in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[ast.Name(), _, ast.Name(), ast.Name(), _] as names),
                ast.Call(func=ast.Attribute(attr="step")),
            ) if isinstance(statement, ast.stmt):
                yield statement, names
            case _:
                pass


def _reset_after(source: Source, step: ast.stmt, names: list[ast.expr]) -> ast.stmt | None:
    """Return what sets the new state to that of a reset, where an episode ended or is cut."""
    ends = {written(one) for one in names[2:4]}
    made = set[str]()
    for one in rest_of_block(source.parents[step], step):
        tests = _tests_of_reset(one, written(names[0]))
        if any(ends <= names_in(test) or made & names_in(test) for test in tests):
            return one
        for target, value, _ in assignments(_alone(one)):
            if ends <= names_in(value):
                made.add(written(target))
    return None


def _tests_of_reset(statement: ast.stmt, new: str) -> list[ast.expr]:
    """Return the test under which a statement sets a name to what `reset` returns."""
    match statement:
        case ast.If(test=test, body=body) if any(_resets(one, new) for one in body):
            return [test]
        case ast.Assign(targets=[target], value=ast.IfExp(test=test, body=body, orelse=orelse)) if (
            written(target) == new and _is_reset(body) and written(orelse) == new
        ):
            return [test]
        case _:
            return []


def _resets(statement: ast.stmt, new: str) -> bool:
    match statement:
        case ast.Assign(targets=[target], value=value):
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            return written(first) == new and _is_reset(value)
        case _:
            return False


def _is_reset(value: ast.expr) -> bool:
    """Return whether a value is `env.reset(...)`, or its first part."""
    match value:
        case ast.Subscript(value=inner):
            return _is_reset(inner)
        case ast.Call(func=ast.Attribute(attr="reset")):
            return True
        case _:
            return False


def _stored_after(
    source: Source, scope: Scope, reset: ast.stmt, names: list[ast.expr]
) -> ast.AST | None:
    """Return what stores the new state after the reset, with the old one and the reward."""
    new, rows = written(names[0]), _rows(scope)
    for statement in rest_of_block(source.parents[reset], reset):
        for node in (statement, *walk(statement)):
            if _is_transition(scope, rows.get(node) or _parts_of(node), names):
                return node
        if any(written(target) == new for target, _, _ in assignments(_alone(statement))):
            return None
    return None


def _rows(scope: Scope) -> dict[ast.AST, list[ast.expr]]:
    return {row.last: row.parts for row in rows_written(scope)}


def _is_transition(scope: Scope, parts: list[ast.expr], names: list[ast.expr]) -> bool:
    """Return whether parts are an old and the new state, the reward, and only `terminated`.

    With the time limit among them, the learner may leave such rows out.
    """
    new, reward, ended, cut, _ = (written(one) for one in names)
    stored = {written(unconverted(one)) for one in parts} - {""}
    both = {
        written(target)
        for target, value, _ in assignments(scope)
        if {ended, cut} <= names_in(value) and not isinstance(value, ast.IfExp)
    }
    if len(stored) < FEWEST or not {new, reward, ended} <= stored or stored & {cut, *both}:
        return False
    old = _set_to(scope, new)
    return any(one in old or _is_state(one) for one in stored - {new, reward, ended, cut})


def _alone(statement: ast.stmt) -> ast.Module:
    """Return a program of one statement, whose parts can be asked for."""
    return ast.Module([statement], [])


def _parts_of(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Call():
            return arguments(node)
        case ast.Tuple(elts=parts, ctx=ast.Load()) | ast.Dict(values=parts):
            return parts
        case _:
            return []


def _set_to(scope: Scope, new: str) -> set[str]:
    """Return the names that are set to a name, and to what these were before: the old state."""
    found = {new}
    while True:
        more = {written(t) for t, value, _ in assignments(scope) if written(value) in found} - {""}
        if more <= found:
            return found - {new}
        found |= more


def _is_state(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return (last in STATES or has_word(last, "obs", "state", "prev")) and not is_of_next(
        ast.Name(last)
    )
