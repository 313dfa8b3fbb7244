"""L12: the share of random actions."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    constants,
    has_word,
    last_word,
    number,
    walk,
    written,
)

ATTACKS = ("attack", "adversar", "perturb", "fgsm", "pgd", "robust")  # ε is a size there


def _growing_epsilon(source: Source) -> Iterator[Hit]:
    known, sizes = constants(source.bodies), _sizes_of_attacks(source)
    for scope in source.scopes:
        for node in walk(scope):
            if _grown(node) in sizes:
                continue
            factor = _factor(node)
            value = None if factor is None else _value(factor, known)
            if value is not None and value > 1:
                yield Hit(node, f"ε is multiplied by {value:g}, so it grows")
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                more = _value(node.value, known) if _is_epsilon(node.target) else None
                if more is not None and 0 < more < 1 and not _starts_at_zero(source, scope, node):
                    yield Hit(node, f"{more:g} is added to ε, so it grows")


def _sizes_of_attacks(source: Source) -> set[str]:
    """Return the names that are given to what disturbs inputs by at most ε."""
    return {
        written(one)
        for call, name in source.calls()
        if has_word(name or last_word(call.func), *ATTACKS)
        for one in arguments(call)
    } - {""}


def _grown(node: ast.AST) -> str:
    """Return the name that a statement sets; empty for others."""
    match node:
        case ast.AugAssign(target=target) | ast.Assign(targets=[target]):
            return written(target)
        case _:
            return ""


def _starts_at_zero(source: Source, scope: Scope, growth: ast.AugAssign) -> bool:
    """Return whether ε starts at 0: a counter, a sweep, or the share of greedy actions."""
    name = written(growth.target)
    bodies = source.bodies if "." in name else [scope, source.tree]
    values = [value for body in bodies for value in _values_of(body, name)]
    return bool(values) and set(map(number, values)) == {0.0}


def _values_of(body: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what a name is set to in a body, without what is added to it."""
    for target, value, statement in assignments(body):
        if written(target) == name and not isinstance(statement, ast.AugAssign):
            yield value


def _factor(node: ast.AST) -> ast.expr | None:
    """Return what ε is multiplied by."""
    match node:
        case ast.AugAssign(target=target, op=ast.Mult(), value=value) if _is_epsilon(target):
            return value
        case ast.Assign(targets=[target], value=value) if _is_epsilon(target):
            return _factor_in(value, written(target))
        case _:
            return None


def _factor_in(value: ast.expr, name: str) -> ast.expr | None:
    """Return what a name is multiplied by in an expression, `max(0.1, epsilon * 1.1)`."""
    for node in ast.walk(value):
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                if name in (written(left), written(right)):
                    return right if written(left) == name else left
            case _:
                pass
    return None


def _is_epsilon(node: ast.AST) -> bool:
    last = written(node).rpartition(".")[2].lower()
    return last in ("eps", "epsilon") or (has_word(last, "epsilon") and not has_word(last, "adam"))


def _value(node: ast.expr, known: dict[str, float]) -> float | None:
    return known.get(written(node)) if written(node) else number(node)


RULES = (
    Rule(
        "L12",
        "epsilon grows",
        "The policy acts more and more at random, and what it has learned is never seen.",
        "Multiply by a factor below 1, or decay it linearly, down to a smallest value.",
        "Stack Overflow 54385568: `epsilon *= .995 + .01`",
        _growing_epsilon,
    ),
)
