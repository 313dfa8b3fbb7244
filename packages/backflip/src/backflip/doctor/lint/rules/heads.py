"""L09, L10, L11: what comes out of networks, and how actions are chosen from it."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    names_in,
    number,
    written,
)

FUNCTIONS_OF_LAYERS = ("relu", "softmax", "tanh", "sigmoid")
CROSS_ENTROPIES = ("cross_entropy", "softmax_cross_entropy")
ACTIVATIONS = ("ReLU", "Softmax", "Tanh", "Sigmoid", "LeakyReLU", "ELU", "Softplus")


def _softmax_twice(source: Source) -> Iterator[Hit]:
    made = [(t, v) for body in source.bodies for t, v, _ in assignments(body)]
    networks = {written(t) for t, v in made if _ends_with_softmax(source, v)} - {""}
    losses = {written(t) for t, v in made if _is_loss(source, v)} - {""}
    for scope in source.scopes:
        soft = _soft_names(source, scope, networks)
        logits = {
            written(t)
            for t, value, _ in assignments(scope)
            if isinstance(value, ast.Call) and last_word(t) == "logits"
        } - soft
        for call, name in source.calls(scope):
            last = name.rpartition(".")[2]
            given = argument(call, "logits")
            if last == "Categorical" and given is not None and _is_soft(source, given, soft):
                yield Hit(call, "`logits` gets the output of a softmax")
            first = call.args[0] if call.args else None
            if first is None:
                continue
            applies = last in CROSS_ENTROPIES or written(call.func) in losses
            if applies and _is_soft(source, first, soft):
                yield Hit(call, "the loss applies a softmax to the output of a softmax")
            elif name.startswith("torch") and last == "Categorical" and written(first) in logits:
                yield Hit(call, "the first argument of `Categorical` is `probs`, not `logits`")


def _soft_names(source: Source, scope: Scope, networks: set[str]) -> set[str]:
    """Return the names of probabilities: what softmax, or a network that ends with it, returns."""
    return {
        written(target)
        for target, value, _ in assignments(scope)
        if _is_softmax(source, value)
        or (isinstance(value, ast.Call) and written(value.func) in networks)
    }


def _ends_with_softmax(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not node.args:
        return False
    kind = source.dotted(node.func).rpartition(".")[2]
    return kind == "Sequential" and _activation(source, node.args[-1]) == "Softmax"


def _is_loss(source: Source, node: ast.expr) -> bool:
    """Return whether a value is an object that applies a softmax and a cross-entropy."""
    return isinstance(node, ast.Call) and source.dotted(node.func).endswith("CrossEntropyLoss")


def _is_softmax(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    inner = node.func.func if isinstance(node.func, ast.Call) else node.func
    last = (source.dotted(inner) or last_word(inner)).rpartition(".")[2]
    return last in ("softmax", "Softmax") or (
        isinstance(inner, ast.Attribute) and inner.attr == "softmax"
    )


def _is_soft(source: Source, node: ast.expr, soft: set[str]) -> bool:
    return written(node) in soft - {""} or _is_softmax(source, node)


def _bounded_values(source: Source) -> Iterator[Hit]:
    for call, name in source.calls():
        if name.rpartition(".")[2] != "Sequential" or len(call.args) < 2:
            continue
        *_, layer, last = call.args
        kind = _activation(source, last)
        if kind and _has_a_value_for_each_action(source, layer) and _is_of_values(source, call):
            yield Hit(last, f"the last layer of Q-values is {kind}")


def _bounded_returns(source: Source) -> Iterator[Hit]:
    """Find `return relu(self.out(x))` in a network of Q-values."""
    for node in source.nodes:
        match node:
            case ast.Return(value=ast.Call(func=func, args=[ast.Call() as inner, *_])):
                kind, layer = last_word(func), written(inner.func)
            case _:
                continue
        inside = source.class_of(node)
        if inside is None or not _is_q(inside.name) or kind not in FUNCTIONS_OF_LAYERS:
            continue
        if _is_layer_of_actions(source, inside, layer):
            yield Hit(node, f"{kind} is applied to Q-values")


def _is_layer_of_actions(source: Source, inside: ast.ClassDef, layer: str) -> bool:
    return any(
        written(target) == layer and _has_a_value_for_each_action(source, value)
        for body in source.bodies
        if source.class_of(body) is inside
        for target, value, _ in assignments(body)
    )


def _heads(source: Source) -> Iterator[Hit]:
    yield from _bounded_values(source)
    yield from _bounded_returns(source)


def _activation(source: Source, node: ast.expr) -> str:
    """Return the name of an activation; empty for other layers."""
    name = source.dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return name if name in ACTIVATIONS else ""


def _has_a_value_for_each_action(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or last_word(node.func) != "linear" or len(node.args) < 2:
        return False
    names = names_in(node.args[1])
    return any(has_word(name, "action", "act_dim") or name.endswith((".n", "_n")) for name in names)


def _is_of_values(source: Source, call: ast.Call) -> bool:
    """Return whether a network is of Q-values, by the name of its class or of what it becomes."""
    inside = source.class_of(call)
    parent = source.parents[call]
    names = [inside.name] if inside is not None else []
    names += [written(target) for target in getattr(parent, "targets", [])]
    return any(map(_is_q, names))


def _maximum_as_action(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            if last_word(target) in ("action", "actions", "act") and _is_maximum(source, value):
                yield Hit(statement, "the action is the largest value, not its place")


def _is_maximum(source: Source, node: ast.expr) -> bool:
    """Return whether a value is `max` of Q-values, taken apart or not."""
    match node:
        case ast.Subscript(value=inner, slice=index):
            return number(index) == 0 and _is_maximum(source, inner)
        case ast.Attribute(value=inner, attr="values"):
            return _is_maximum(source, inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="item" | "cpu" | "numpy")):
            return _is_maximum(source, inner)
        case ast.Call(func=func, args=args):
            if last_word(func) not in ("max", "amax") and source.dotted(func) != "max":
                return False
            owner = func.value if isinstance(func, ast.Attribute) else func
            words = names_in(owner) | {name for one in args for name in names_in(one)}
            return any(map(_is_q, words))
        case _:
            return False


def _is_q(name: str) -> bool:
    """Return whether a name is that of Q-values, or of a network of them."""
    last = name.rpartition(".")[2].lower()
    return "q" in last.split("_") or has_word(last, "qval", "qnet", "dqn", "qfunction")


RULES = (
    Rule(
        "L09",
        "a softmax twice, or not at all",
        "Probabilities taken for logits make a policy that is nearly uniform and cannot become "
        "certain: between the best and the worst action of two there is a factor of e.",
        "Pass the output of the last linear layer as `logits=`.",
        "Stack Overflow, many; PyTorch, documentation of CrossEntropyLoss",
        _softmax_twice,
    ),
    Rule(
        "L10",
        "an activation after Q-values",
        "Values outside of its range cannot be learned: no negative ones after ReLU, none beyond 1 "
        "after tanh or softmax.",
        "End the network with the linear layer.",
        "DRLinter, arXiv:2101.00135, `Wrong activation for output`",
        _heads,
    ),
    Rule(
        "L11",
        "the largest value instead of the action that has it",
        "A value is used as the number of an action: mostly action 0.",
        "Use `argmax`.",
        "DRLinter, arXiv:2101.00135, `Wrong output`",
        _maximum_as_action,
    ),
)
