"""Shares of random actions that are large, and that nothing changes: a part of L12."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    assignments,
    has_word,
    last_word,
    parameters,
    unconverted,
    written,
)
from backflip.doctor.lint.values import defaults, given_for, known_numbers, value_of

UNIFORM = ("random", "rand", "uniform", "random_sample")
LARGE = 0.5  # share of random actions; with more of them, few episodes show what was learned


def still_epsilons(source: Source) -> Iterator[Hit]:
    """Find `random() < epsilon` where ε is one large number in the whole program."""
    if not steps_an_environment(source):
        return
    for node in source.nodes:
        name = _compared(node)
        value = _only_value(source, name.rpartition(".")[2]) if is_epsilon(name) else None
        if value is not None and LARGE <= value <= 1:
            yield Hit(node, f"`{name}` is {value:g}, and nothing lowers it")


def steps_an_environment(source: Source) -> bool:
    """Return whether a program has the loop in which an agent meets its environment."""
    return any(
        isinstance(call.func, ast.Attribute) and has_word(written(call.func.value), "env")
        for call in source.calls_of.get("step", ())
    )


def _compared(node: ast.AST) -> str:
    """Return the name that a random number is smaller than; empty for other code."""
    match node:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
            draw, bound = left, right
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
            draw, bound = right, left
        case _:
            return ""
    plain = unconverted(draw)
    plain = plain.value if isinstance(plain, ast.Subscript) else plain
    is_draw = isinstance(plain, ast.Call) and last_word(plain.func) in UNIFORM
    return written(bound) if is_draw else ""


def _only_value(source: Source, last: str) -> float | None:
    """Return the number that all names with a last word have; None if it is not known."""
    stores = [
        node
        for node in source.nodes
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and last_word(node) == last.lower()
    ]
    set_here = [
        value_of(value, known_numbers(source, scope))
        for scope in source.scopes
        for target, value, statement in assignments(scope)
        if last_word(target) == last.lower() and not isinstance(statement, ast.AugAssign)
    ]
    only = len(stores) == len(set_here) == 1
    return set_here[0] if only and _is_passed_on(source, last) else None


def _is_passed_on(source: Source, last: str) -> bool:
    """Return whether every function with such a parameter is called here, with that name."""
    return all(
        _keeps_name(source, function, one.arg)
        for function in source.scopes
        if isinstance(function, FUNCTIONS)
        for one in parameters(function)
        if one.arg == last
    )


def _keeps_name(source: Source, function: Function, name: str) -> bool:
    given = list(given_for(source, function, name))
    kept = name in defaults(function) or bool(given)
    return kept and all(last_word(value) == name.lower() for value in given)


def is_epsilon(name: str) -> bool:
    """Return whether a name is that of ε, the share of random actions."""
    last = name.rpartition(".")[2].lower()
    return last in ("eps", "epsilon") or (has_word(last, "epsilon") and not has_word(last, "adam"))
