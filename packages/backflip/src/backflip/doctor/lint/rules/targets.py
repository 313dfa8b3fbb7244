"""L05, L06, L20: targets of the temporal difference."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    constants,
    discounts,
    has_word,
    last_word,
    names_in,
    number,
    walk,
    written,
)

LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
LEARNING = ("q", "v", "qf", "qf1", "dqn", "model", "local", "online")
NETWORKS = ("net", "network", "model", "policy", "critic", "actor")
SMALL = 0.2  # a smaller share of the target network is surely meant the other way round


def _gradient_through_target(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch"):
        return
    for scope in source.scopes:
        if not any(last_word(call.func) == "backward" for call, _ in source.calls(scope)):
            continue
        stopped, following = _detached_later(scope), _values_of_next(source, scope)
        for target, value, statement in assignments(scope):
            name = written(target)
            if name in stopped or source.without_gradients(statement):
                continue
            if not _bootstraps(value, following):
                continue
            if name in _second_arguments(source, scope):
                yield Hit(statement, f"gradients of the loss flow through the target `{name}`")


def _values_of_next(source: Source, scope: Scope) -> set[str]:
    """Return the names of what a network that learns says of the next state, with gradients."""
    return {
        written(target)
        for target, value, statement in assignments(scope)
        if not source.without_gradients(statement) and _is_value_of_next(value)
    } - {""}


def _is_value_of_next(value: ast.expr) -> bool:
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    if _stops(calls):
        return False
    return any(
        _is_learning_network(call) and has_word(" ".join(map(ast.unparse, call.args)), "next")
        for call in calls
    )


def _stops(calls: list[ast.Call]) -> bool:
    return any(last_word(one.func) in ("detach", "item", "numpy", "stop_gradient") for one in calls)


def _bootstraps(value: ast.expr, following: set[str]) -> bool:
    """Return whether a value is γ times the output of a network that learns, with gradients."""
    names = names_in(value)
    if not discounts(value):
        return False
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    if _stops(calls):
        return False
    return bool(following & names) or any(_is_learning_network(call) for call in calls)


def _is_learning_network(call: ast.Call) -> bool:
    name = written(call.func)
    if has_word(name, "target", "tgt", "old", "ema"):
        return False
    last = last_word(call.func)
    return bool(call.args) and (last in LEARNING or last.endswith(("net", "network", "critic")))


def _detached_later(scope: Scope) -> set[str]:
    return {
        written(node.func.value)
        for node in walk(scope)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "detach"
    }


def _second_arguments(source: Source, scope: Scope) -> set[str]:
    """Return the names that losses are computed to: second arguments, or what is subtracted."""
    found: set[str] = set()
    for call, name in source.calls(scope):
        if name.rpartition(".")[2] in LOSSES or has_word(last_word(call.func), "criterion", "loss"):
            found |= {written(one) for one in call.args[:2]}
    for node in walk(scope):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            found |= {written(node.left), written(node.right)}
    return found - {""}


def _column_against_row(source: Source) -> Iterator[Hit]:
    """Follow the shapes (B, 1) and (B,) by name, in the order of the text."""
    if not source.imports_any("torch"):
        return
    for scope in source.scopes:
        shapes: dict[str, str] = {}
        for node in walk(scope):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    shapes[written(target)] = _shape(node.value, shapes)
            if sorted(_shape(one, shapes) for one in _compared(source, node)) == ["column", "row"]:
                yield Hit(node, "one side has shape (B, 1), the other (B,)")


def _compared(source: Source, node: ast.AST) -> list[ast.expr]:
    """Return the two sides of a loss, or of a difference."""
    if isinstance(node, ast.Call) and source.dotted(node.func).endswith(LOSSES):
        return node.args[:2]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return [node.left, node.right]
    return []


def _shape(node: ast.expr, shapes: dict[str, str]) -> str:
    """Return `column` for (B, 1), `row` for (B,), or an empty string for what is not known."""
    match node:
        case ast.Name() | ast.Attribute() if written(node) in shapes:
            return shapes[written(node)]
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
            return "row" if _is_maximum(call) else ""
        case ast.Attribute(value=ast.Call() as call, attr="values"):
            return "row" if _is_maximum(call) else ""
        case ast.Call():
            return _shape_of_call(node, shapes)
        case ast.BinOp(left=left, right=right):
            found = {_shape(left, shapes), _shape(right, shapes)} - {""}
            return found.pop() if len(found) == 1 else ""
        case _:
            return ""


def _shape_of_call(call: ast.Call, shapes: dict[str, str]) -> str:
    match call.func, call.args:
        case ast.Attribute(attr="gather"), [dim, index] if number(dim) == 1:
            return "column" if _is_unsqueezed(index) else ""
        case ast.Attribute(attr="amax"), _:
            return "row" if _is_maximum(call) else ""
        case ast.Attribute(attr="squeeze" | "flatten", value=inner), _:
            return "row" if _shape(inner, shapes) else ""
        case ast.Attribute(attr="unsqueeze", value=inner), [dim] if number(dim) in (1, -1):
            return "column" if _shape(inner, shapes) == "row" else ""
        case ast.Attribute(attr="detach" | "float" | "to", value=inner), _:
            return _shape(inner, shapes)
        case _:
            return ""


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
    places = [argument(call, "dim", place) for place in (0, 1)]
    return any(number(place) in (1.0, -1.0) for place in places)


def _target_network(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch"):
        return
    known = constants(source.scopes)
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            if _is_network(target, True) and _is_network(value, False):
                seen = f"`{written(target)}` and `{written(value)}` are one object"
                yield Hit(statement, f"{seen}, so the target changes with every gradient step")
    for call, _ in source.calls():
        mixes = last_word(call.func) == "copy_" and bool(call.args)
        if mixes and _mixes_the_wrong_way(call.args[0], known):
            yield Hit(call, "the target network is replaced almost entirely in every update")


def _is_network(node: ast.expr, target: bool) -> bool:
    last = last_word(node)
    if not isinstance(node, ast.Name | ast.Attribute) or ("target" in last) != target:
        return False
    words = last.split("_")
    known = (*NETWORKS, *LEARNING, "qnetwork")
    return words[-1] in known or (target and words[-1] == "target" and words[0] in known)


def _mixes_the_wrong_way(node: ast.expr, known: dict[str, float]) -> bool:
    """Return whether `a target + b online` has a small a."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    for part in (node.left, node.right):
        if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)):
            continue
        for share, of in ((part.left, part.right), (part.right, part.left)):
            value, names = _share(share, known), names_in(of)
            if value is None or not names:
                continue
            target = any(has_word(name, "target", "tgt") for name in names)
            if target and value <= SMALL:
                return True
    return False


def _share(node: ast.expr, known: dict[str, float]) -> float | None:
    """Return the value of a share: a number, a constant, or one minus it."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right):
            inner = _share(right, known)
            return None if inner is None else 1 - inner
        case ast.Name() | ast.Attribute():
            return known.get(written(node))
        case _:
            return number(node)


RULES = (
    Rule(
        "L05",
        "gradients flow through the target",
        "The loss also changes the value of the next state, so that the target moves towards the "
        "prediction. Residual gradients learn slowly, or something else.",
        "Compute the target inside `with torch.no_grad():`, or use `.detach()`.",
        "Mnih et al. 2015; Spinning Up, DQN and DDPG",
        _gradient_through_target,
    ),
    Rule(
        "L06",
        "(B, 1) against (B,) in a loss",
        "The shapes broadcast to (B, B): every prediction is compared with every target, and all "
        "predictions move to the mean of the targets. PyTorch only warns.",
        "Give both the same shape: `q.gather(1, action).squeeze(1)`, or `target.unsqueeze(1)`.",
        "PyTorch, warning of mse_loss; fault of DRLinter's samples",
        _column_against_row,
    ),
    Rule(
        "L20",
        "the target network is not a slow copy",
        "Without a slow copy the target chases the prediction, and values diverge or oscillate.",
        "Make it by `copy.deepcopy(net)`; update it by `target = (1 - tau) * target + tau * net` "
        "with a small tau (0.005), or copy the weights every few thousand steps.",
        "Mnih et al. 2015; Stack Overflow 57106676",
        _target_network,
    ),
)
