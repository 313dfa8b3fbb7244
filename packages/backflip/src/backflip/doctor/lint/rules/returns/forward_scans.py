"""L57: advantages that are computed from the first step on."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    discounts,
    has_word,
    names_in,
    written,
)

CREDIT = ("gae", "adv", "delta", "td_error")  # returns from the first step on may scale rewards
TURNS = ("flip", "flipud", "reverse", "reversed")


def _forward_scans(source: Source) -> Iterator[Hit]:
    """Find `jax.lax.scan(step, init, trajectory)` where `step` sums discounted rewards."""
    functions = {node.name: node for node in source.nodes if isinstance(node, FUNCTIONS)}
    for call, name in source.calls():
        if not name.endswith("lax.scan") or argument(call, "reverse", 4) is not None:
            continue
        given = argument(call, "f", 0), argument(call, "init", 1), argument(call, "xs", 2)
        step = functions.get(written(given[0])) if given[0] is not None else None
        if step is None or given[2] is None or any(map(_turns, ast.walk(given[2]))):
            continue
        if _is_turned_before(source, call, given[2]):
            continue
        if _sums_backwards(step, _names_around(source, call)):
            yield Hit(call, f"`{step.name}` needs the later step, and gets the earlier one")


def _turns(node: ast.AST) -> bool:
    match node:
        case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
            return True
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in TURNS
        case _:
            return False


def _is_turned_before(source: Source, call: ast.Call, given: ast.expr) -> bool:
    """Return whether the function turns something round that the scan goes over."""
    names = names_in(given)
    for node in ast.walk(source.function_of(call)):
        if not (isinstance(node, ast.Assign) and any(map(_turns, ast.walk(node.value)))):
            continue
        if names & {written(one) for target in node.targets for one in ast.walk(target)}:
            return True
    return False


def _names_around(source: Source, call: ast.Call) -> set[str]:
    """Return the names that say what a scan computes: of its function, and of what it is set to."""
    function, statement = source.function_of(call), source.parents[call]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {getattr(function, "name", ""), *(name for one in targets for name in names_in(one))}


def _sums_backwards(step: Function, around: set[str]) -> bool:
    """Return whether a function computes `gae = delta + gamma * lambda * gae` of its carry."""
    for node in ast.walk(step):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                parts = {*map(str.lower, names_in(value) | around), name.lower()}
                of_credit = any(has_word(one, *CREDIT) for one in parts)
                if of_credit and name in names_in(value) and discounts(value):
                    return True
            case _:
                pass
    return False


RULES = (
    Rule(
        "L57",
        "advantages are computed from the first step on",
        "Each step is credited with what was earned before it, and not with what came after.",
        "Scan from the end: `jax.lax.scan(step, init, trajectory, reverse=True)`.",
        "Schulman et al. 2016, arXiv:1506.02438, equation 16",
        _forward_scans,
    ),
)
