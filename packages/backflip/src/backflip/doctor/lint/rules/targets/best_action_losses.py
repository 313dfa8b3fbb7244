"""L33: losses of the best action instead of the one that was taken."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    discounts,
    has_word,
    is_of_next,
    last_word,
    names_in,
    number,
    walk,
    written,
)

LOSSES = (
    *("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss", "mean_squared_error", "huber"),
    *("squared_difference", "mse", "criterion", "loss_fn", "loss_function"),
)
SQUARES = ("square", "pow", "abs")
LARGEST = ("max", "amax", "reduce_max")
SHAPED = ("reshape", "squeeze", "unsqueeze", "view", "flatten", "expand_dims", "float")
CLOSED = ("detach", "stop_gradient", "numpy", "item")
TARGETS = ("target", "label", "expected", "y_true", "td")
DEPTH = 3


def _best_action_losses(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        for node, sides in _compared(scope):
            for own, other in (sides, sides[::-1]):
                if _is_target(source, scope, other) and _is_largest(source, own):
                    yield Hit(node, f"`{ast.unparse(own)}` is the value of the best action")


def _compared(scope: Scope) -> Iterator[tuple[ast.AST, tuple[ast.expr, ast.expr]]]:
    """Yield the losses of a scope with the two values that they compare."""
    for node in walk(scope):
        match node:
            case ast.BinOp(left=ast.BinOp(left=left, op=ast.Sub(), right=right), op=ast.Pow()):
                yield node, (left, right)
            case ast.Call(func=ast.Attribute(value=ast.BinOp() as gap, attr=attr)) if (
                isinstance(gap.op, ast.Sub) and attr in SQUARES
            ):
                yield node, (gap.left, gap.right)
            case ast.Call(func=func, args=[ast.BinOp(left=left, op=ast.Sub(), right=right)]) if (
                last_word(func) in SQUARES
            ):
                yield node, (left, right)
            case ast.Call(func=func, args=[left, right, *_]) if last_word(func) in LOSSES:
                yield node, (left, right)
            case _:
                pass


def _is_target(source: Source, scope: Scope, node: ast.expr) -> bool:
    """Return whether a value is what a network shall predict, and is no prediction itself."""
    named = any(has_word(name.rpartition(".")[2], *TARGETS) for name in names_in(node))
    return named or any(discounts(value) for value in _values(source, scope, node))


def _values(source: Source, scope: Scope, node: ast.expr) -> list[ast.expr]:
    """Return what a name is set to: in the scope, or in the file if it is an attribute."""
    name = written(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    bodies = source.bodies if "." in name else [scope]
    return [
        value
        for body in bodies
        for target, value, _ in assignments(body)
        if name and written(target) == name
    ]


def _is_largest(source: Source, node: ast.expr, depth: int = DEPTH) -> bool:
    """Return whether a value is the largest output of a network for this state."""
    match node:
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in CLOSED:
            return False
        case ast.Subscript(value=inner, slice=index):
            return number(index) == 0 and _is_largest(source, inner, depth)
        case ast.Attribute(value=inner, attr="values"):
            return _is_largest(source, inner, depth)
        case ast.Call() as call if last_word(call.func) in LARGEST:
            return _is_open(source, call)
        case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args) if attr in SHAPED:
            is_method = not isinstance(owner, ast.Name) or owner.id not in source.imports
            inner = owner if is_method else args[0] if args else owner
            return _is_largest(source, inner, depth)
        case ast.Name() | ast.Attribute() if depth:
            values = _values(source, source.function_of(node), node)
            return len(values) == 1 and _is_largest(source, values[0], depth - 1)
        case _:
            return False


def _is_open(source: Source, call: ast.Call) -> bool:
    """Return whether `max` is of one network, of this state, and has gradients."""
    if source.without_gradients(call) or is_of_next(call) or discounts(call):
        return False
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call
    is_module = isinstance(owner, ast.Name) and owner.id in source.imports
    values = call.args[:1] if is_module or owner is call else [owner]
    return len(values) == 1 and any(map(_is_q, names_in(values[0])))


def _is_q(name: str) -> bool:
    words = name.rpartition(".")[2].lower().split("_")
    plain = {word.rstrip("12s") for word in words}
    return bool(plain & {"q", "qvalue", "qval", "qnet", "qnetwork", "dqn"})


RULES = (
    Rule(
        "L33",
        "the loss is of the best action, not of the one taken",
        "The target follows from the action that was taken, but the value of another action moves "
        "towards it.",
        "Take the value of the action: `q(obs).gather(1, actions)`.",
        "Stack Overflow 54385568: `mean_squared_error(max_q_value, reward_labels)`; Mnih et al. "
        "2015, algorithm 1",
        _best_action_losses,
    ),
)
