"""Which networks give values, as a program uses them: one output is in a discounted target.

`r + 0.9 * (1 - end) * net(s2).max(1)[0]`, `... gather(1, best)`, `torch.min(*net(s2, a2))`.
"""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.built_networks import built_names, calls_of_network
from backflip.doctor.lint.source import (
    CONVERTED,
    SMALLEST_DISCOUNT,
    Source,
    factors,
    is_discount,
    is_usual_discount,
    last_word,
    walk,
    written,
)

PICKS = ("max", "amax", "reduce_max", "gather", "take_along_axis", "min", "amin", "minimum", "fmin")
KEPT = (*CONVERTED, "squeeze", "detach", "stop_gradient", "unsqueeze", "view", "reshape", "flatten")
MOST_NAMES = 3  # that are followed from an output to a target


def gives_values(source: Source, builder: ast.AST) -> bool:
    """Return whether what a class, or a function that builds a network, makes gives values."""
    names = built_names(source, builder)
    return any(
        _reaches_target(source, call, len(call.args) > 1, MOST_NAMES)
        for name in names
        if name
        for call in calls_of_network(source, name)
    )


def _reaches_target(source: Source, node: ast.expr, is_picked: bool, left: int) -> bool:
    """Return whether a value, or one that is picked of it, is a factor of a discounted product."""
    parent = source.parents[node]
    while True:
        match parent:
            case ast.Call(func=func) if func is node:
                is_picked = is_picked or last_word(func) in PICKS
                if last_word(func) not in (*PICKS, *KEPT):
                    return False
            case ast.Call(func=func) if node in parent.args and last_word(func) in (*PICKS, *KEPT):
                is_picked = is_picked or last_word(func) in PICKS
            case ast.BinOp(op=ast.Mult()):
                return is_picked and _is_discounted(source, parent)
            case ast.BinOp(op=ast.Sub() | ast.Add()) if is_picked:
                pass
            case ast.Attribute() | ast.Subscript() if parent.value is node:
                pass
            case ast.Starred() | ast.UnaryOp():
                pass
            case ast.Assign():
                reads = _reads(source, parent) if left else ()
                return any(_reaches_target(source, one, is_picked, left - 1) for one in reads)
            case _:
                return False
        node, parent = parent, source.parents[parent]


def _is_discounted(source: Source, product: ast.BinOp) -> bool:
    """Return whether a product, or the one that it is a part of, has a discount and is added."""
    whole: ast.AST = product
    while isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Mult):
        product, whole = whole, source.parents[whole]
    is_added = isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Add)
    return is_added and any(_is_discount(source, one) for one in factors(product))


def _is_discount(source: Source, node: ast.expr) -> bool:
    known = source.constants.get(written(node), 0.0)
    return is_discount(written(node)) or is_usual_discount(node) or SMALLEST_DISCOUNT <= known < 1


def _reads(source: Source, statement: ast.Assign) -> Iterator[ast.expr]:
    """Yield where the names that a statement sets are read in its function."""
    parts = [
        one
        for target in statement.targets
        for one in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    for node in walk(source.function_of(statement)):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            yield node
