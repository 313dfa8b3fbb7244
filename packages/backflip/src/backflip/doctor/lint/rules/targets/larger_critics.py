"""L46: targets of the larger of two critics."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    assignments,
    discounts,
    last_word,
    names_in,
    walk,
    written,
)

LARGEST = ("max", "maximum", "amax")


def _larger_critics(source: Source) -> Iterator[Hit]:
    """Find `max(q1, q2)` in what is discounted."""
    for scope in source.scopes:
        kept = {written(target): value for target, value, _ in assignments(scope)}
        for node in walk(scope):
            if not isinstance(node, ast.BinOp | ast.AugAssign) or not discounts(node):
                continue
            for part in [node, *(kept[name] for name in names_in(node) if name in kept)]:
                for call in ast.walk(part):
                    if _is_larger_of_two(call):
                        yield Hit(call, "the larger of two critics is the target")


def _is_larger_of_two(node: ast.AST) -> bool:
    """Return whether code is the larger of two values whose names differ in 1 and 2."""
    match node:
        case ast.Call(func=func, args=[one, other]) if last_word(func) in LARGEST:
            names = ast.unparse(one), ast.unparse(other)
            return (
                names[0] != names[1]
                and names[0].replace("1", "2") == names[1]
                and "q" in names[0].lower()
            )
        case _:
            return False


RULES = (
    Rule(
        "L46",
        "the target is the larger of two critics",
        "Each critic is too large somewhere, and the policy looks for these places: with the "
        "larger one, values grow without end.",
        "Take the smaller one: `torch.min(q1, q2)`.",
        "Fujimoto et al. 2018, arXiv:1802.09477, equation 10",
        _larger_critics,
    ),
)
