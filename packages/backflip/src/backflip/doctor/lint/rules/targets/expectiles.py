"""L64: expectiles that are turned round."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    last_word,
    number,
    parameters,
    walk,
)

SHARES = ("tau", "expectile")


def _expectiles(source: Source) -> Iterator[Hit]:
    """Find `|tau - (u > 0)| * u ** 2`, and `where(u > 0, 1 - tau, tau)`, of u = q - v."""
    for scope in source.scopes:
        if not isinstance(scope, FUNCTIONS):
            continue
        for node in walk(scope):
            name, positive = _weighted(node)
            if name and positive and _is_gain(source, scope, name):
                yield Hit(node, f"`{name}` > 0 gets the weight 1 - tau")


def _weighted(node: ast.AST) -> tuple[str, bool]:
    """Return u, and whether 1 - tau is the weight where u > 0; an empty name for other code."""
    match node:
        case ast.Call(func=func, args=[ast.BinOp(left=tau, op=ast.Sub(), right=test)]) if (
            last_word(func) in ("abs", "absolute") and last_word(tau) in SHARES
        ):
            return _compared(test)
        case ast.Call(func=func, args=[test, first, second]) if (
            last_word(func) in ("where", "select")
            and last_word(second) in SHARES
            and _is_rest(first)
        ):
            return _compared(test)
        case ast.Call(func=func, args=[test, first, second]) if (
            last_word(func) in ("where", "select")
            and last_word(first) in SHARES
            and _is_rest(second)
        ):
            name, positive = _compared(test)
            return name, not positive
        case _:
            return "", False


def _is_rest(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return number(left) == 1 and last_word(right) in SHARES
        case _:
            return False


def _compared(test: ast.expr) -> tuple[str, bool]:
    """Return the name that is compared with 0, and whether the test is that it is larger."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=ast.Name(id=name), ops=[sign], comparators=[zero]) if (
                number(zero) == 0
            ):
                return name, isinstance(sign, ast.Gt | ast.GtE)
            case _:
                pass
    return "", False


def _is_gain(source: Source, scope: Function, name: str) -> bool:
    """Return whether u surely is a target minus a value: in the function, or in all calls of it."""
    for node in walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                return _is_target_minus_value(value)
            case _:
                pass
    places = [one.arg for one in parameters(scope) if one.arg not in ("self", "cls")]
    calls = source.calls_of.get(scope.name.lower(), [])
    if name not in places or not calls:
        return False
    at = places.index(name)
    given = [call.args[at] if at < len(call.args) else None for call in calls]
    return all(
        one is not None and _is_named_gain(source, call, one)
        for call, one in zip(calls, given, strict=True)
    )


def _is_named_gain(source: Source, call: ast.Call, given: ast.expr) -> bool:
    if isinstance(given, ast.Name):
        known = [
            node.value
            for node in walk(source.function_of(call))
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == given.id
        ]
        return len(known) == 1 and _is_target_minus_value(known[0])
    return _is_target_minus_value(given)


def _is_target_minus_value(value: ast.expr) -> bool:
    match value:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return "q" in last_word(left) + _made(left) and _is_value(right)
        case _:
            return False


def _is_value(node: ast.expr) -> bool:
    last = last_word(node) or _made(node)
    return last in ("v", "vs", "vf") or "value" in last or last.startswith("v_")


def _made(node: ast.expr) -> str:
    return last_word(node.func) if isinstance(node, ast.Call) else ""


RULES = (
    Rule(
        "L64",
        "the expectile is turned round",
        "With tau = .9, values above are to count nine times as much as those below. Turned round, "
        "the value of a state becomes that of the worst actions in the data.",
        "Weight by `torch.abs(tau - (u < 0).float())` with `u = q - v`.",
        "Kostrikov et al. 2021, arXiv:2110.06169, equation 5",
        _expectiles,
    ),
)
