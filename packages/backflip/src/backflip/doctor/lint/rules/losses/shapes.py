"""L06: shapes of predictions and targets."""

import ast
from collections.abc import Iterator
from types import EllipsisType
from typing import NamedTuple

from backflip.doctor.lint.questions.gradients import LOSSES
from backflip.doctor.lint.questions.origins import (
    column_networks,
    is_number_of_each,
    lists_of_numbers,
)
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.unturned_columns import unturned_columns
from backflip.doctor.lint.source import (
    MADE_FROM,
    Scope,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    made_by,
    names_in,
    number,
    walk,
    written,
)

LOSS_CLASSES = ("MSELoss", "SmoothL1Loss", "HuberLoss", "L1Loss")
OF_STEPS = ("reward", "rews", "done", "terminat", "terminal", "terms")  # in names
SELECTIONS = ("idx", "ind", "perm", "batch", "sampler", "mb_")  # in names of minibatches
IN_PLACE = ("squeeze_", "unsqueeze_", "resize_", "t_", "transpose_")  # these change a shape


class Shapes(NamedTuple):
    """What is known in one scope.

    Attributes:
        named: the shapes of names.
        networks: that give columns.
        lists: of a number for each step; None for a program that makes columns of them.
        indices: names of indices that surely have one column.
    """

    named: dict[str, str]
    networks: set[str]
    lists: set[str] | None
    indices: set[str]


def _column_against_row(source: Source) -> Iterator[Hit]:
    yield from list(_followed_shapes(source)) or unturned_columns(source)


def _followed_shapes(source: Source) -> Iterator[Hit]:
    """Follow the shapes (B, 1) and (B,) by name, in the order of the text."""
    if not source.imports_any("torch", "tensorflow", "keras"):
        return
    losses, networks = _loss_objects(source), column_networks(source)
    for scope in source.scopes:
        shapes = Shapes({}, networks, lists_of_numbers(source, scope), _indices(scope))
        for node in walk(scope):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    shapes.named.update(_assigned_shapes(target, node.value, shapes))
            shapes.named.update(_changed_shapes(node, shapes))
            found = {_shape(one, shapes) for one in _compared(source, node, losses)}
            if found in ({"column", "row"}, {"column", "likely"}):
                certain = "" if "row" in found else "most likely "
                yield Hit(node, f"one side has shape (B, 1), the other {certain}(B,)")


def _indices(scope: Scope) -> set[str]:
    """Return the names that are only set to an index of one column: `a = a.unsqueeze(1)`."""
    found: dict[str, list[bool]] = {}
    for target, value, _ in assignments(scope):
        found.setdefault(written(target), []).append(_is_unsqueezed(value))
    return {name for name, sure in found.items() if name and all(sure)}


def _loss_objects(source: Source) -> set[str]:
    """Return the names of objects such as `nn.MSELoss()`."""
    return {
        written(target)
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if _makes_a_loss(source, value)
    } - {""}


def _makes_a_loss(source: Source, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and source.dotted(node.func).endswith(LOSS_CLASSES)


def _compared(source: Source, node: ast.AST, losses: set[str]) -> list[ast.expr]:
    """Return the two sides of a loss, or of a sum, a difference or a product."""
    if isinstance(node, ast.Call) and (
        source.dotted(node.func).endswith(LOSSES)
        or written(node.func) in losses
        or _makes_a_loss(source, node.func)
    ):
        return node.args[:2]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return [node.left, node.right]
    return []


def _assigned_shapes(target: ast.expr, value: ast.expr, shapes: Shapes) -> dict[str, str]:
    """Return the shapes of names after an assignment; `best, places = q.max(1)` has two."""
    match target, value:
        case ast.Tuple(elts=[best, places]), ast.Call() if _is_maximum(value):
            return {written(best): "row", written(places): "row"}
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            pairs = zip(targets, values, strict=True)
            return {written(one): _shape(of, shapes) for one, of in pairs}
        case ast.Tuple(elts=targets), _:
            return {written(one): "" for one in targets}
        case _:
            return {written(target): _shape(value, shapes)}


def _changed_shapes(node: ast.AST, shapes: Shapes) -> dict[str, str]:
    """Return the shape of a name that is changed in place: `best.unsqueeze_(1)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in IN_PLACE:
            return {written(owner): _shape_of_call(node, shapes)}
        case _:
            return {}


def _shape(node: ast.expr, shapes: Shapes) -> str:
    """Return `column` for (B, 1), `row` for (B,), `likely` for what is (B,) by where it comes from.

    It is `mixed` for what a column and a row give, and an empty string for what is not known.
    """
    match node:
        case ast.Name() | ast.Attribute() if written(node) in shapes.named:
            return shapes.named[written(node)]
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
            return "row" if _is_maximum(call) else ""
        case ast.Attribute(value=ast.Call() as call, attr="values"):
            return "row" if _is_maximum(call) else ""
        case ast.Subscript(
            value=whole,
            slice=ast.Tuple(
                elts=[ast.Slice() | ast.Constant(value=EllipsisType()), ast.Constant(value=0)]
            ),
        ) if _shape(whole, shapes) == "column":
            return "row"
        case ast.Subscript(value=whole, slice=ast.Name(id=index)) if has_word(index, *SELECTIONS):
            return _shape(whole, shapes)
        case ast.Call():
            return _shape_of_call(node, shapes)
        case ast.BinOp(left=left, right=right):
            return _together({_shape(left, shapes), _shape(right, shapes)} - {""})
        case _:
            return ""


def _together(found: set[str]) -> str:
    """Return the shape of what is computed from two values."""
    if len(found) <= 1:
        return found.pop() if found else ""
    return "row" if found == {"row", "likely"} else "mixed"


def _shape_of_call(call: ast.Call, shapes: Shapes) -> str:
    if made_by(call) in shapes.networks:
        return "column"
    match call.func, call.args:
        case ast.Attribute(attr=attr), [given, *_] if attr in MADE_FROM:
            return "likely" if is_number_of_each(given, shapes.lists) else _shape(given, shapes)
        case ast.Attribute(value=ast.Name(id="tf"), attr=attr), [inner, *_]:
            return _shape_of_tensorflow(call, attr, inner, shapes)
        case ast.Attribute(value=ast.Name(id="torch"), attr="squeeze" | "flatten"), [inner, *_]:
            return "row" if _shape(inner, shapes) else ""
        case ast.Attribute(attr="gather"), _:
            return "column" if _gathers_one(call, shapes) else ""
        case ast.Attribute(attr="amax"), _:
            return "row" if _is_maximum(call) else ""
        case ast.Attribute(attr="squeeze" | "squeeze_" | "flatten", value=inner), _:
            return "row" if _shape(inner, shapes) else ""
        case ast.Attribute(attr="unsqueeze" | "unsqueeze_", value=inner), [dim] if number(dim) in (
            1,
            -1,
        ):
            return "column" if _shape(inner, shapes) == "row" or _is_of_steps(inner) else ""
        case ast.Attribute(attr="view" | "reshape", value=inner), [ast.expr() as size] if number(
            size
        ) == -1 and _shape(inner, shapes):
            return "row"
        case ast.Attribute(attr="detach" | "float" | "to" | "cuda" | "double", value=inner), _:
            return _shape(inner, shapes)
        case _:
            return ""


def _shape_of_tensorflow(call: ast.Call, name: str, inner: ast.expr, shapes: Shapes) -> str:
    """Return the shape that a function of TensorFlow gives."""
    of_last = number(argument(call, "axis", 1)) in (1.0, -1.0)
    match name:
        case "squeeze":
            return "row" if _shape(inner, shapes) else ""
        case "reshape":
            size = argument(call, "shape", 1)
            is_flat = isinstance(size, ast.List | ast.Tuple) and list(map(number, size.elts)) == [
                -1
            ]
            return "row" if is_flat and _shape(inner, shapes) else ""
        case "reduce_sum" | "reduce_max" | "reduce_mean" if of_last:
            return "column" if argument(call, "keepdims") is not None else "row"
        case "expand_dims" if of_last:
            return "column" if _shape(inner, shapes) == "row" or _is_of_steps(inner) else ""
        case "stop_gradient" | "cast" | "identity" | "square" | "abs":
            return _shape(inner, shapes)
        case _:
            return ""


def _is_of_steps(node: ast.expr) -> bool:
    """Return whether a value has one number for each step, by its names: rewards or ends."""
    return any(has_word(name.rpartition(".")[2], *OF_STEPS) for name in names_in(node))


def _gathers_one(call: ast.Call, shapes: Shapes) -> bool:
    """Return whether a call is `q.gather(1, index)`, or a function of q, with one column."""
    of_torch = written(call.func) == "torch.gather"
    dim = argument(call, "dim", 1 if of_torch else 0)
    index = argument(call, "index", 2 if of_torch else 1)
    if number(dim) not in (1, -1) or index is None:
        return False
    of_rows = number(dim) == 1 and isinstance(index, ast.Name)  # the index must have two axes, too
    return of_rows or _is_unsqueezed(index) or written(index) in shapes.indices


def _is_unsqueezed(node: ast.expr) -> bool:
    """Return whether an index surely has one column."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(), ast.Constant(value=None)])):
            return True
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[dim]):
            return number(dim) in (1.0, -1.0)
        case ast.Call(func=ast.Attribute(attr="view" | "reshape"), args=[rows, columns]):
            return number(rows) == -1 and number(columns) == 1
        case ast.Call(func=ast.Attribute(value=inner, attr="long" | "to" | "type")):
            return _is_unsqueezed(inner)
        case _:
            return False


def _is_maximum(call: ast.Call) -> bool:
    """Return whether a call is `x.max(1)` without `keepdim`."""
    if last_word(call.func) not in ("max", "amax") or argument(call, "keepdim") is not None:
        return False
    if any(isinstance(one, ast.Constant) and one.value is True for one in call.args):
        return False
    places = [argument(call, "dim", place) for place in (0, 1)]
    return any(number(place) in (1.0, -1.0) for place in places)


RULES = (
    Rule(
        "L06",
        "(B, 1) against (B,) in a loss",
        "The shapes broadcast to (B, B): every prediction is compared with every target, and all "
        "predictions move to the mean of the targets. PyTorch only warns.",
        "Give both the same shape: `q.gather(1, action).squeeze(1)`, or `target.unsqueeze(1)`.",
        "PyTorch, warning of mse_loss; fault of DRLinter's samples",
        _column_against_row,
    ),
)
