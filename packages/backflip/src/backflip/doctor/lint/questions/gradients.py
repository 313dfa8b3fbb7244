"""Through which code gradients flow, and what losses compare."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.source import (
    Source,
    assignments,
    has_word,
    last_word,
    number,
    walk,
    written,
)

LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
STOPS = (
    *("detach", "detach_", "item", "tolist", "tensor", "stop_gradient", "to_np", "t2n"),
    *("argmax", "argmin", "argsort", "long", "int", "bool"),
)
KERAS_LOSSES = ("mse", "meansquarederror", "mean_squared_error", "squared_difference", "huber")
SORTS = ("max", "min", "sort", "topk")  # their second result is places
SIZES = ("pow", "square", "abs")  # functions that make a loss of a difference
OF_ERRORS = ("huber_loss", "l2_loss")  # of optax, these also get a difference


def with_gradients(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the code of an expression that gradients flow through: no indices, nothing detached."""
    if _stops(node):
        return
    yield node
    match node:
        case ast.Subscript(value=value):
            inner = [value]
        case ast.Call(func=ast.Attribute(attr="gather") as func, args=args):
            inner = [func, *args[:1]]  # the first argument of `torch.gather` is no index
        case _:
            inner = ast.iter_child_nodes(node)
    for one in inner:
        yield from with_gradients(one)


def _stops(node: ast.AST) -> bool:
    """Return whether gradients end at an expression: at `.data`, `.item()`, `float(x)`, x > y."""
    match node:
        case ast.Compare() | ast.Attribute(attr="data" | "indices"):
            return True
        case ast.Subscript(value=ast.Call(func=func), slice=index):
            return last_word(func) in SORTS and number(index) == 1
        case ast.Call(func=ast.Name(id="float" | "int" | "bool")):
            return True
        case ast.Call(func=func):
            return last_word(func) in STOPS or "numpy" in last_word(func)
        case _:
            return False


def stopped_later(scope: ast.AST) -> set[str]:
    """Return the names that are used without their gradients."""
    found: set[str] = set()
    for node in walk(scope):
        match node:
            case ast.Call(func=ast.Attribute(attr="detach" | "detach_", value=of)):
                found.add(written(of))
            case ast.Call(func=func, args=[of]) if last_word(func) == "stop_gradient":
                found.add(written(of))
            case _:
                pass
    return found


def sides_of_losses(source: Source, scope: ast.AST) -> Iterator[ast.expr]:
    """Yield what losses compare: the arguments of `mse_loss(q, y)`, and q and y of (q - y)²."""
    for sides in compared_by_losses(source, scope):
        yield from sides


def compared_by_losses(source: Source, scope: ast.AST) -> Iterator[list[ast.expr]]:
    """Yield the two sides that each loss compares, or what is known of them."""
    for call, name in source.calls(scope):
        last = _last_name(call)
        known = name.rpartition(".")[2] in LOSSES or last in KERAS_LOSSES
        if known or has_word(last, "criterion", "loss"):
            yield call.args[:2]
    named: dict[str, list[ast.expr]] = {}
    for target, value, _ in assignments(scope):
        named.setdefault(written(target), []).append(value)
    for node in walk(scope):
        error = _error(source, node)
        known = named.get(written(error), [error]) if error and written(error) else [error]
        match known:
            case [ast.BinOp(left=left, op=ast.Sub(), right=right)]:
                yield [left, right]
            case _:
                pass


def _error(source: Source, node: ast.AST) -> ast.expr | None:
    """Return what a loss is made of: x of `x ** 2`, `x.square()`, `jnp.square(x)`."""
    match node:
        case ast.BinOp(left=error, op=ast.Pow()):
            return error
        case ast.Call(func=func, args=[error, *_]) if last_word(func) in SIZES and (
            isinstance(func, ast.Name) or _is_package(source, func)
        ):
            return error
        case ast.Call(func=ast.Attribute(value=error, attr=attr)) if attr in SIZES:
            return error
        case ast.Call(func=func, args=[error]) if last_word(func) in OF_ERRORS:
            return error
        case _:
            return None


def _is_package(source: Source, func: ast.expr) -> bool:
    """Return whether a function is one of an imported package: `jnp.square`."""
    return written(func).partition(".")[0] in source.imports


def _last_name(call: ast.Call) -> str:
    """Return the last word of what is called; of `nn.MSELoss()(q, y)`, of what is made first."""
    made = call.func.func if isinstance(call.func, ast.Call) else call.func
    return last_word(made)
