"""Columns of networks with rows of batches, in programs that turn neither: a part of L06."""

import ast
import re
from collections.abc import Iterator
from types import EllipsisType

from backflip.doctor.lint.questions.batch_rows import Rows, is_of_steps
from backflip.doctor.lint.questions.column_outputs import Columns
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    Source,
    argument,
    factors,
    has_word,
    is_discount,
    is_usual_discount,
    last_word,
    names_in,
    number,
    written,
)

TURNS = (  # functions that make a column of a row, or a row of a column
    *("unsqueeze", "unsqueeze_", "squeeze", "squeeze_", "expand_dims", "flatten", "ravel"),
    *("vstack", "column_stack", "dstack", "atleast_2d", "rearrange", "view_as", "reshape_as"),
    *("expand_as", "broadcast_to", "diag", "diagonal", "vmap", "filter_vmap"),
)
SIZED = ("reshape", "view", "resize", "resize_")
FILLED = ("zeros", "empty", "ones", "full")
PICKS = ("gather", "take_along_axis", "batch_gather")  # these need columns of actions
OF_POLICIES = ("log", "prob", "logit", "entropy", "actor", "action", "policy", "pi", "mu", "act")


def unturned_columns(source: Source) -> Iterator[Hit]:
    """Find `r + gamma * critic(s)` where a critic gives (B, 1), and nothing is given that shape."""
    if not source.imports_any("torch", "jax") or any(_turns(source, one) for one in source.nodes):
        return
    columns, found = Columns(source), set[ast.AST]()
    if not columns.any_network():
        return
    rows = Rows(source, columns)
    sums = [one for one in source.nodes if isinstance(one, ast.BinOp)]
    for node in sorted(sums, key=lambda one: one.lineno):
        scope = source.function_of(node)
        if scope not in found and _meet(node, columns, rows):
            found.add(scope)
            yield Hit(node, "one side has shape (B, 1), the other (B,), and nothing changes that")


def _meet(node: ast.BinOp, columns: Columns, rows: Rows) -> bool:
    """Return whether a column is added to a row, or subtracted from it."""
    if not isinstance(node.op, ast.Add | ast.Sub):
        return False
    for one, other in ((node.left, node.right), (node.right, node.left)):
        is_target = isinstance(node.op, ast.Add) and any(map(_is_discount, factors(other)))
        if columns.has(other) and rows.has(one, is_target):
            return True
    return False


def _is_discount(node: ast.expr) -> bool:
    return is_discount(written(node)) or is_usual_discount(node)


def _turns(source: Source, node: ast.AST) -> bool:
    """Return whether code gives a column or a row another shape, or may do so."""
    match node:
        case ast.Call(func=func):
            of = func.value if isinstance(func, ast.Attribute) else node
            turns = _turns_by_call(source, node)
        case ast.Subscript(value=of, slice=ast.Tuple(elts=[first, *_] as parts)):
            turns = any(map(_is_new_axis, parts)) or (
                _is_whole(first) and number(parts[-1]) in (0, -1)
            )
        case ast.Subscript(value=of, slice=index) if _is_new_axis(index):
            turns = any(map(is_of_steps, names_in(of)))
        case ast.List(elts=[of], ctx=ast.Load()) | ast.Tuple(elts=[of], ctx=ast.Load()):
            turns = any(map(is_of_steps, names_in(of)))
        case _:
            return False
    return turns and not _picks(source, node) and not _is_of_policy(node)


def _turns_by_call(source: Source, call: ast.Call) -> bool:
    last = getattr(call.func, "attr", getattr(call.func, "id", ""))
    numbers = [
        number(part)
        for one in call.args
        for part in (one.elts if isinstance(one, ast.Tuple) else [one])
    ]
    if argument(call, "keepdim") is not None or argument(call, "keepdims") is not None:
        return True
    if last in SIZED:
        return numbers[-1:] == [1] or numbers in ([-1], [])
    if last in FILLED:
        shape = call.args[0] if call.args else None
        if isinstance(shape, ast.Tuple | ast.List):
            numbers = [number(one) for one in shape.elts]
        return len(numbers) > 1 and numbers[-1] == 1
    if last == "flatten" and number(argument(call, "start_dim", 0)) == 1:
        return False
    if last in ("unsqueeze", "expand_dims", "squeeze") and 0 in numbers:
        return any(map(is_of_steps, names_in(call)))
    return last in TURNS or argument(call, "ndmin") is not None


def _is_new_axis(node: ast.expr) -> bool:
    is_none = isinstance(node, ast.Constant) and node.value is None
    return is_none or last_word(node) == "newaxis"


def _is_whole(node: ast.expr) -> bool:
    """Return whether an index is `:` or `...`."""
    match node:
        case ast.Slice(lower=None, upper=None):
            return True
        case ast.Constant(value=EllipsisType()):
            return True
        case _:
            return False


def _picks(source: Source, node: ast.AST) -> bool:
    """Return whether code is a part of `q.gather(1, a[:, None])[:, 0]`, which needs a column."""
    parts = ast.walk(node)
    if any(isinstance(one, ast.Call) and last_word(one.func) in PICKS for one in parts):
        return True
    while isinstance(node := source.parents.get(node, source.tree), ast.expr):
        if isinstance(node, ast.Call) and last_word(node.func) in PICKS:
            return True
    return False


def _is_of_policy(node: ast.AST) -> bool:
    """Return whether code is about actions and their probabilities, by its names."""
    words = {word for name in names_in(node) for word in re.split(r"[._]", name.lower())}
    return any(word in OF_POLICIES or has_word(word, *OF_POLICIES[:6]) for word in words)
