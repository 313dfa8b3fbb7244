"""L55: projections of distributions that lose the probability of whole numbers."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Scope, Source, assignments, last_word, walk, written


def _lost_probabilities(source: Source) -> Iterator[Hit]:
    """Find weights `u - b` and `b - l` where `l = b.floor()` and `u = b.ceil()` may be equal."""
    for scope in source.scopes:
        below, above = _rounded(scope, "floor"), _rounded(scope, "ceil")
        for name in below.keys() & above.keys():
            low, high = below[name], above[name]
            if _is_changed(scope, low, high):
                continue
            for node in walk(scope):
                if _is_difference(node, high, name):
                    seen = f"both weights are 0 where `{name}` is a whole number"
                    yield Hit(node, seen)
                    break


def _rounded(scope: Scope, how: str) -> dict[str, str]:
    """Return the names that are rounded, and those of the result: b and l of `l = b.floor()`."""
    found: dict[str, str] = {}
    for target, value, _ in assignments(scope):
        for node in ast.walk(value):
            match node:
                case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=[]) if attr == how:
                    found[ast.unparse(inner)] = written(target)
                case ast.Call(func=func, args=[inner]) if last_word(func) == how:
                    found[ast.unparse(inner)] = written(target)
                case _:
                    pass
    return {name: result for name, result in found.items() if result}


def _is_changed(scope: Scope, low: str, high: str) -> bool:
    """Return whether a scope compares both, or moves one of them."""
    for node in walk(scope):
        match node:
            case (
                ast.Compare(left=left, comparators=[right])
                | ast.Call(func=ast.Attribute(value=left, attr="eq"), args=[right])
            ):
                if {written(left), written(right)} == {low, high}:
                    return True
            case ast.Call(func=func, args=[left, right, *_]) if last_word(func) in ("equal", "eq"):
                if {written(left), written(right)} == {low, high}:
                    return True
            case ast.AugAssign(target=target) if written(target) in (low, high):
                return True
            case _:
                pass
    return False


def _is_difference(node: ast.AST, high: str, place: str) -> bool:
    """Return whether code is `u - b`, or `u.float() - b`."""
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if ast.unparse(right) == place:
            while isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute):
                left = left.func.value
            return written(left) == high
        case _:
            return False


RULES = (
    Rule(
        "L55",
        "probability is lost in the projection",
        "Where the projected value is an atom, floor and ceiling are equal and both weights are 0. "
        "The distribution sums to less than 1, most of all at ends of episodes.",
        "Move one of them: `lower[(upper > 0) & (lower == upper)] -= 1`, or add "
        "`(lower == upper)` to the weight.",
        "Bellemare et al. 2017, arXiv:1707.06887, algorithm 1",
        _lost_probabilities,
    ),
)
