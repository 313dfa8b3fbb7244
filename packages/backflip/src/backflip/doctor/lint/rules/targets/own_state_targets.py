"""L37: tables whose target is the value of the state that is updated."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    discounts,
    is_of_next,
    last_word,
    walk,
    written,
)

LARGEST = ("max", "amax", "nanmax")
Row = tuple[str, str]  # a table, and the code of the state


def _own_state_targets(source: Source) -> Iterator[Hit]:
    """Find `reward + gamma * max(q[state])` where `q[state]` is updated, and a next state known."""
    for scope in source.scopes:
        updated = set(_updated(scope))
        if not updated or not _knows_next(scope):
            continue
        for node in walk(scope):
            if isinstance(node, ast.Assign | ast.AugAssign):
                for row in _bootstrapped(node):
                    if row in updated:
                        seen = f"`{row[0]}[{row[1]}]` is updated towards its own largest value"
                        yield Hit(node, seen)
                        break


def _row(node: ast.AST) -> Row | None:
    """Return the row of a table: `("q", "s")` of `q[s, a]`, `q[s][a]` and `q[s]`."""
    found: Row | None = None
    while isinstance(node, ast.Subscript):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        found = written(node.value), ast.unparse(first)
        node = node.value
    return found if found and found[0] else None


def _updated(scope: Scope) -> Iterator[Row]:
    """Yield the rows with one entry that a scope sets."""
    for target, _, _ in assignments(scope):
        is_entry = isinstance(target, ast.Subscript) and (
            isinstance(target.slice, ast.Tuple) or isinstance(target.value, ast.Subscript)
        )
        row = _row(target) if is_entry else None
        if row is not None:
            yield row


def _knows_next(scope: Scope) -> bool:
    """Return whether a scope steps an environment, and names the state that follows."""
    for target, value, _ in assignments(scope):
        match target, value:
            case ast.Tuple(elts=[after, *_]), ast.Call(func=ast.Attribute(attr="step")):
                return is_of_next(after)
            case _:
                pass
    return False


def _bootstrapped(statement: ast.Assign | ast.AugAssign) -> Iterator[Row]:
    """Yield the rows whose largest value a statement discounts."""
    for node in ast.walk(statement):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and discounts(node)):
            continue
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and last_word(call.func) in LARGEST:
                owner = call.func.value if isinstance(call.func, ast.Attribute) else None
                row = _row(owner) if owner is not None else None
                row = row or (_row(call.args[0]) if call.args else None)
                if row is not None:
                    yield row


RULES = (
    Rule(
        "L37",
        "the target is of the state that is updated",
        "The value of a state is learned from itself, and never from what follows: no reward "
        "travels back.",
        "Take the next state: `reward + gamma * q[next_state].max()`.",
        "a common mistake in tabular Q-learning",
        _own_state_targets,
    ),
)
