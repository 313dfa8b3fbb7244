"""L42: tables of values that keep whole numbers only."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, argument, assignments, discounts, last_word, written

MADE = {"zeros": 1, "ones": 1, "empty": 1, "full": 2}  # the place of the type
WHOLE = ("int", "int8", "int16", "int32", "int64", "uint8", "long", "int_")


def _whole_tables(source: Source) -> Iterator[Hit]:
    """Find `q = np.zeros((n, m), dtype=int)` where `q[s, a]` is set to something discounted."""
    learned = {
        written(_table_of(target))
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if isinstance(target, ast.Subscript) and discounts(value)
    }
    learned |= {
        written(_table_of(node.target))
        for node in source.nodes
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
        if discounts(node.value)
    }
    for scope in source.scopes:
        for target, value, node in assignments(scope):
            if written(target) in learned - {""} and _is_whole(value):
                yield Hit(node, f"`{written(target)}` rounds every value to a whole number")


def _table_of(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_whole(value: ast.expr) -> bool:
    """Return whether a value is a new array of whole numbers."""
    match value:
        case ast.Call(func=ast.Attribute(attr=made)) if made in MADE:
            kind = argument(value, "dtype", MADE[made])
            text = kind.value if isinstance(kind, ast.Constant) else last_word(kind or value)
            return text in WHOLE
        case _:
            return False


RULES = (
    Rule(
        "L42",
        "a table of values keeps whole numbers",
        "Every update is rounded towards 0: steps of less than 1 change nothing, and nothing is "
        "learned.",
        "Use real numbers: `np.zeros((states, actions))`, without `dtype=int`.",
        "NumPy's assignment into arrays converts to the type of the array",
        _whole_tables,
    ),
)
