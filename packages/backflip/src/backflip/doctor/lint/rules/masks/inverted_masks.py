"""L54: masks of ends that are turned round twice."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, discounts, last_word, number, walk

# Names that say that they are 1 where an episode goes on.
GOING_ON = ("not_done", "notdone", "nonterm", "non_term", "not_term", "not_end", "alive")
ENDS = ("done", "term", "end", "over", "finish")


def _inverted_masks(source: Source) -> Iterator[Hit]:
    """Find `reward + gamma * (1 - mask) * value` where `mask = 1 - done`."""
    masks = _masks(source)
    for scope in source.scopes:
        for statement in walk(scope):
            if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Return):
                continue
            if statement.value is None or not discounts(statement.value):
                continue
            for node in ast.walk(statement.value):
                match node:
                    case ast.BinOp(left=left, op=ast.Sub(), right=right) if number(left) == 1:
                        name = last_word(right)
                    case _:
                        continue
                if name in masks or name.startswith(GOING_ON):
                    yield Hit(node, f"`{name}` is 1 already where the episode goes on")


def _masks(source: Source) -> set[str]:
    """Return the last words of names that are only set to 1 where an episode goes on."""
    found: dict[str, list[bool]] = {}
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            if not isinstance(target, ast.Tuple | ast.List):
                found.setdefault(last_word(target), []).append(_is_mask(value))
    return {name for name, sure in found.items() if "mask" in name and all(sure)}


def _is_mask(value: ast.expr) -> bool:
    """Return whether a value is `1 - done`, `0.0 if done else 1.0` or `float(not done)`."""
    match value:
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if number(left) == 1:
            return _is_end(right)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _is_end(test) and number(body) == 0 and number(orelse) == 1
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
            return _is_end(inner)
        case ast.Call(args=[inner, *_]):
            return _is_mask(inner)
        case ast.Call(func=ast.Attribute(value=inner)):
            return _is_mask(inner)
        case ast.List(elts=[inner]) | ast.ListComp(elt=inner):
            return _is_mask(inner)
        case _:
            return False


def _is_end(node: ast.expr) -> bool:
    names = (last_word(one) for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute))
    return any(word in name for name in names for word in ENDS if not name.startswith(GOING_ON))


RULES = (
    Rule(
        "L54",
        "the mask of ends is turned round twice",
        "It is 1 where the episode goes on. Turned round once more, values are added only where "
        "there is no next state, and targets elsewhere are single rewards.",
        "Multiply by the mask as it is: `reward + gamma * mask * value`.",
        "a common mistake where a replay stores `1 - done`",
        _inverted_masks,
    ),
)
