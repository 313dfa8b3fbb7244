"""L50: targets of the number of the best action, in place of its value."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, discounts, factors, last_word, number, unconverted


def _best_places(source: Source) -> Iterator[Hit]:
    """Find `γ * q(s').max(1)[1]` and `γ * argmax(q(s'))`."""
    for node in source.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and discounts(node)):
            continue
        if any(map(_is_place, factors(node))):
            yield Hit(node, "the number of the best action is discounted, not its value")


def _is_place(node: ast.expr) -> bool:
    """Return whether an expression is the place of the largest value."""
    match unconverted(node):
        case ast.Call(func=func):
            return last_word(func) == "argmax"
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="max"), args=[_]), slice=place):
            return number(place) == 1
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="max")), attr="indices"):
            return True
        case _:
            return False


RULES = (
    Rule(
        "L50",
        "the target is the number of an action",
        "Values are learned towards 0, 1, 2 and so on, whatever the actions are worth.",
        "Take the largest value: `q(next_obs).max(1).values`, or `.max(1)[0]`.",
        "PyTorch's documentation of `torch.max`, which returns values and indices",
        _best_places,
    ),
)
