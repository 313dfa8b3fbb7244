"""Where a program adds the value of a state, and where it leaves it out."""

import ast
from collections.abc import Iterator
from typing import TypeVar

from backflip.doctor.lint.questions.episode_ends import Ends
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    discounts,
    has_word,
    is_of_next,
    names_in,
    unconverted,
    walk,
    written,
)

LARGEST = ("max", "amax", "reduce_max")  # functions of values: `gamma * np.max(model(obs))`

Side = TypeVar("Side")


def values_in(scope: Scope) -> set[str]:
    """Return the names that are set to a value: R of `R = critic(obs)`."""
    return {written(target) for target, value, _ in assignments(scope) if _gives_a_value(value)} - {
        ""
    }


def _gives_a_value(node: ast.expr) -> bool:
    """Return whether an expression is a value: `critic(obs).detach()`, `values[-1]`."""
    match unconverted(node):
        case ast.IfExp(body=body, orelse=orelse):
            return _gives_a_value(body) or _gives_a_value(orelse)
        case ast.Call(func=ast.Attribute(value=owner) as func):
            return is_value(written(func)) or _gives_a_value(owner)
        case ast.Call(func=func):
            return is_value(written(func))
        case plain:
            return is_value(written(plain))


def is_value(name: str) -> bool:
    """Return whether a name is that of a value."""
    last = name.rpartition(".")[2].lower()
    words = {word.rstrip("12") for word in last.split("_")}
    return (
        bool(words & {"v", "q", "vf", "qf", "qt"})
        or last in LARGEST
        or has_word(last, "value", "critic", "boot", "q_", "_q", "qval", "target")
    )


def has_value(term: ast.AST, values: set[str]) -> bool:
    """Return whether a term names a value, or has a function of the next state: `net(next_obs)`."""
    calls = (one for one in ast.walk(term) if isinstance(one, ast.Call))
    return any(name in values or is_value(name) for name in names_in(term)) or any(
        is_of_next(given) for call in calls for given in call.args
    )


def leaves_a_value_out(source: Source, scope: Scope, statement: ast.stmt, ends: Ends) -> bool:
    """Return whether a value is only in the branch of a test in which the episode goes on."""
    for node in ast.walk(statement):
        match node:
            case (
                ast.IfExp(test=test, body=first, orelse=second)
                | ast.Call(func=ast.Attribute(attr="where"), args=[test, first, second])
            ):
                going, ended = _sides(ends, test, first, second)
                if going is not None and ended is not None and _is_bootstrap(going, ended):
                    return True
            case _:
                pass
    parent = source.parents[statement]
    if not isinstance(parent, ast.If):
        return False
    going, ended = _sides(ends, parent.test, parent.body, parent.orelse)
    if going is None or ended is None or statement not in going:
        return False
    return _adds_a_value(scope, statement, ended)


def _sides(ends: Ends, test: ast.expr, first: Side, second: Side) -> tuple[Side | None, ...]:
    """Return what runs where an episode goes on, and where it ended; None if that is not tested."""
    tested = ends.tests(test)
    if tested is None:
        return None, None
    return (second, first) if tested else (first, second)


def _is_bootstrap(going: ast.expr, ended: ast.expr) -> bool:
    """Return whether a value is in one expression, and none in the other."""
    has_one = any(map(is_value, names_in(going)))
    return has_one and not any(map(is_value, names_in(ended))) and not discounts(ended)


def _adds_a_value(scope: Scope, statement: ast.stmt, ended: list[ast.stmt]) -> bool:
    """Return whether a statement adds γ times a value to what has none where episodes end."""
    if not any(map(is_value, names_in(statement))):
        return False
    match statement:
        case ast.AugAssign(op=ast.Add()):
            return not any(map(discounts, ended))
        case ast.Assign(targets=[target]):
            other = [
                value
                for one, value, where in assignments(scope)
                if written(one) == written(target) and where is not statement
            ]
            return bool(other) and not any(map(discounts, other))
        case _:
            return False


def term_of(source: Source, node: ast.AST) -> ast.AST:
    """Return the largest code around a node that is no sum; all of `x *= node`."""
    while True:
        parent = source.parents[node]
        match parent:
            case ast.AugAssign(op=ast.Mult()):
                return parent
            case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.stmt():
                return node
            case _:
                node = parent


def statements(scope: Scope) -> Iterator[ast.stmt]:
    """Yield the statements of a scope that compute something."""
    simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
    return (node for node in walk(scope) if isinstance(node, simple))
