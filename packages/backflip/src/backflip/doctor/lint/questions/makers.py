"""What makes a value: names, parameters and own functions are followed to the code that does."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from backflip.doctor.lint.questions.values import defaults, given_for
from backflip.doctor.lint.source import (
    FUNCTIONS,
    VERSIONS_KEPT,
    Function,
    Scope,
    Source,
    assignments,
    parameters,
    walk,
    written,
)

LONGEST = 12  # steps that are followed


class Set(NamedTuple):
    """One place where a name is set.

    Attributes:
        target: the name.
        value: what it is set to; of `a, b = f()`, the call.
        place: which part of the value it gets; None for all of it.
        statement: the assignment.
    """

    target: ast.expr
    value: ast.expr
    place: int | None
    statement: ast.AST


def made_at(source: Source, node: ast.expr) -> ast.expr:
    """Return the code that makes a value; the name or call at which its trace is lost."""
    return list(trace(source, node))[-1]


def trace(source: Source, node: ast.expr) -> Iterator[ast.expr]:
    """Yield a value, and what it stands for, step by step."""
    for _ in range(LONGEST):
        yield node
        found = _called(source, node, None) if isinstance(node, ast.Call) else _set(source, node)
        if found is None:
            return
        node = found


def own_function(source: Source, call: ast.Call) -> Function | None:
    """Return the function or method of the program that a call calls, if only one has its name."""
    match call.func:
        case ast.Name(id=name):
            found = [one for one in _functions(source).get(name, ()) if not _is_method(source, one)]
        case ast.Attribute(value=owner, attr=name):
            if written(owner).partition(".")[0] in source.imports:
                return None
            found = [one for one in _functions(source).get(name, ()) if _is_method(source, one)]
            if written(owner) == "self":
                inside = source.class_of(call.func)
                found = [one for one in found if source.class_of(one) is inside]
        case _:
            return None
    return found[0] if len(found) == 1 else None


def is_always_before(source: Source, statement: ast.AST, node: ast.AST) -> bool:
    """Return whether a statement runs whenever a later node of the same function does."""
    while not isinstance(statement, ast.stmt):
        statement = source.parents[statement]
    block = source.parents[statement]
    while not isinstance(node, ast.Module):
        node, inside = source.parents[node], node
        if node is block:
            bodies = (getattr(block, name, []) for name in ("body", "orelse", "finalbody"))
            return any(statement in one and inside in one for one in bodies)
    return False


@lru_cache(maxsize=VERSIONS_KEPT)
def _functions(source: Source) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for scope in source.scopes:
        if isinstance(scope, FUNCTIONS):
            found.setdefault(scope.name, []).append(scope)
    return found


def _is_method(source: Source, function: Function) -> bool:
    return isinstance(source.parents[function], ast.ClassDef)


def _called(source: Source, call: ast.Call, place: int | None) -> ast.expr | None:
    """Return what an own function returns, or a part of it; None for another or several.

    `learn` of an algorithm returns the algorithm.
    """
    function = own_function(source, call)
    if function is None:
        match call.func, place:
            case ast.Attribute(value=owner, attr="learn"), None:
                return owner
            case _:
                return None
    returned = [one.value for one in walk(function) if isinstance(one, ast.Return) and one.value]
    value = returned[0] if len(returned) == 1 else None
    if place is None or value is None:
        return value
    parts = value.elts if isinstance(value, ast.Tuple) else []
    return parts[place] if place < len(parts) else None


def _set(source: Source, node: ast.expr) -> ast.expr | None:
    """Return what a name is set to where it is read; None if that is not one thing."""
    name = written(node)
    if not name or isinstance(node, ast.Subscript):
        return None
    home = source.home(node, name)
    found = _sets_of(source, node, name, home)
    if found is None:
        return _given(source, home, name) if name in _parameters(home) else None
    return found.value if found.place is None else _part(source, found)


def _part(source: Source, found: Set) -> ast.expr | None:
    match found.value, found.place:
        case ast.Call() as call, int(place):
            return _called(source, call, place)
        case _:
            return None


def _sets_of(source: Source, node: ast.expr, name: str, home: Scope) -> Set | None:
    """Return the assignment that gives a name its value at a place."""
    inside = source.class_of(node) if name.startswith("self.") else None
    found = [
        one
        for one in _sets(source).get(name, ())
        if source.home(one.target, name) is home
        and (inside is None or source.class_of(one.target) is inside)
    ]
    here = source.function_of(node)
    own = [one for one in found if source.function_of(one.target) is here]
    if not own:
        return found[-1] if found and _are_straight(source, found) else None
    before = [one for one in own if _end(one.value) <= _start(node)]
    if not before:
        return None
    last = before[-1]
    plain = not isinstance(last.statement, ast.AugAssign)
    return last if plain and is_always_before(source, last.statement, node) else None


def _are_straight(source: Source, found: list[Set]) -> bool:
    """Return whether a name is set in one function, line by line, or once."""
    if any(isinstance(one.statement, ast.AugAssign) for one in found):
        return False
    if len(found) == 1:
        return True
    blocks = {source.parents[one.statement] for one in found}
    return len(blocks) == 1 and isinstance(blocks.pop(), (*FUNCTIONS, ast.Module))


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


@lru_cache(maxsize=VERSIONS_KEPT)
def _sets(source: Source) -> dict[str, list[Set]]:
    """Return where each name is set, in the order of the text."""
    found: dict[str, list[Set]] = {}
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for at, one in enumerate(parts):
                if not isinstance(one, ast.Subscript) and written(one):
                    place = at if isinstance(target, ast.Tuple) else None
                    found.setdefault(written(one), []).append(Set(one, value, place, statement))
    return found


def _parameters(scope: Scope) -> set[str]:
    return set() if isinstance(scope, ast.Module) else {one.arg for one in parameters(scope)}


def _given(source: Source, home: Scope, name: str) -> ast.expr | None:
    """Return what the only call gives for a parameter, or its default without a call."""
    if isinstance(home, ast.Module):
        return None
    given = list(given_for(source, home, name))
    if len(given) == 1:
        return given[0]
    return None if given else defaults(home).get(name)
