"""L09, L10: what comes out of networks."""

import ast
from collections.abc import Iterator
from functools import partial

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.layers import (
    FORWARD,
    activation,
    becomes,
    classes_that_return,
    ends_with_linear,
    is_dense,
    last_value,
    layers_of,
    names_that_are,
    resolved,
    returned_values,
    size_of,
)
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    made_by,
    names_in,
    number,
    written,
)

FUNCTIONS_OF_LAYERS = ("relu", "softmax", "tanh", "sigmoid")
CROSS_ENTROPIES = (
    "cross_entropy",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
)
TF_LOSSES = ("softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits")
KERAS_LOSSES = (
    "categoricalcrossentropy",
    "sparsecategoricalcrossentropy",
    "categorical_crossentropy",
    "sparse_categorical_crossentropy",
)
PARTS = ("feature", "body", "trunk", "encoder", "base", "torso", "hidden", "stem", "embed")
SHARES = ("atom", "quantile", "bins", "support")  # outputs are probabilities of values then


def _softmax_twice(source: Source) -> Iterator[Hit]:
    made = [(t, v) for body in source.bodies for t, v, _ in assignments(body)]
    classes, networks = _soft_classes(source), _soft_networks(source)
    losses = {written(t) for t, v in made if _is_loss(source, v)} - {""}
    of_logits = {written(t) for t, v in made if _is_loss_of_logits(source, v)} - {""}
    raw = _raw_networks(source)
    for scope in source.scopes:
        inside = source.class_of(scope)
        own = {"self", "self.forward"} if inside is not None and inside.name in classes else set()
        soft = _soft_names(source, scope, networks | own)
        logits = {
            written(t)
            for t, value, _ in assignments(scope)
            if isinstance(value, ast.Call) and last_word(t) == "logits"
        } - soft
        for call, name in source.calls(scope):
            last = name.rpartition(".")[2]
            given = _logits_of(source, call, name)
            if given is not None and _is_soft(source, given, soft, networks | own):
                yield Hit(call, "`logits` gets the output of a softmax")
            first = call.args[0] if call.args else None
            if first is None:
                continue
            applies = last in CROSS_ENTROPIES or written(call.func) in losses
            if applies and _is_soft(source, first, soft, networks | own):
                yield Hit(call, "the loss applies a softmax to the output of a softmax")
            elif _is_loss_of_logits(source, call) or written(call.func) in of_logits:
                predicted = argument(call, "y_pred", 1)
                if predicted is not None and _is_soft(source, predicted, soft, networks | own):
                    yield Hit(call, "the loss applies a softmax to the output of a softmax")
            elif name.startswith("torch") and last == "Categorical" and written(first) in logits:
                yield Hit(call, "the first argument of `Categorical` is `probs`, not `logits`")
        yield from _raw_probabilities(source, scope, raw)


def _raw_probabilities(source: Source, scope: Scope, raw: set[str]) -> Iterator[Hit]:
    """Find `Categorical(policy(obs))` of a network that ends with a linear layer."""
    values: dict[str, list[bool]] = {}
    for target, value, _ in assignments(scope):
        values.setdefault(written(target), []).append(made_by(value) in raw)
    names = {name for name, found in values.items() if name and all(found)}
    for call, name in source.calls(scope):
        if not name.startswith("torch") or name.rpartition(".")[2] != "Categorical":
            continue
        given = argument(call, "probs", 0)
        is_named_logits = last_word(given or call) == "logits"  # that is found by its name
        if given is None or (is_named_logits and call.args):
            continue
        if made_by(given) in raw or written(given) in names:
            yield Hit(call, "`probs` gets the output of a linear layer, which is logits")


def _raw_networks(source: Source) -> set[str]:
    """Return the names of networks whose last layer is linear, and of nothing else."""
    classes = classes_that_return(source, partial(ends_with_linear, source))

    def is_raw(value: ast.expr) -> bool:
        return ends_with_linear(source, value) or made_by(value) in classes

    return names_that_are(source, is_raw)


def _logits_of(source: Source, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a distribution or a loss takes for logits; None for other calls."""
    first, _, last = name.partition(".")[0], *name.rpartition(".")[1:]
    if name == "jax.random.categorical" or last in TF_LOSSES:
        return argument(call, "logits", 1)
    if name.endswith("random.categorical") and first in ("tensorflow", "keras"):
        return argument(call, "logits", 0)
    if last != "Categorical":
        return None
    of_tf = source.imports_any("tensorflow_probability") and not source.imports_any("torch")
    return argument(call, "logits", 0 if of_tf else None)


def _soft_networks(source: Source) -> set[str]:
    """Return the names of networks that end with a softmax."""
    classes, makers = _soft_classes(source), _soft_makers(source)
    soft: dict[str, list[bool]] = {}
    for body in source.bodies:
        for target, value, _ in assignments(body):
            maker = last_word(value.func) if isinstance(value, ast.Call) else ""
            is_soft = made_by(value) in classes or maker in makers
            is_soft = is_soft or _ends_with_softmax(source, value)
            soft.setdefault(written(target), []).append(is_soft)
    return {name for name, found in soft.items() if name and all(found)}


def _soft_makers(source: Source) -> set[str]:
    """Return the functions that return a network which ends with a softmax, in lower case."""
    found: dict[str, list[bool]] = {}
    for node in source.nodes:
        scope = source.function_of(node) if isinstance(node, ast.Return) else source.tree
        if isinstance(node, ast.Return) and not isinstance(scope, ast.Module):
            value = last_value(source, node)
            is_soft = value is not None and _ends_with_softmax(source, value)
            found.setdefault(scope.name.lower(), []).append(is_soft)
    return {name for name, soft in found.items() if all(soft)}


def _soft_classes(source: Source) -> set[str]:
    """Return the names of networks whose `forward` returns probabilities, always."""
    return {
        body.name
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and _returns_softmax(source, body)
    }


def _returns_softmax(source: Source, body: ast.ClassDef) -> bool:
    own = {
        written(target)
        for method in body.body
        if isinstance(method, ast.FunctionDef)
        for target, value, _ in assignments(method)
        if _ends_with_softmax(source, value)
    }
    returned = returned_values(source, body)
    return bool(returned) and all(
        one and (_is_softmax(source, one) or made_by(one) in own) for one in returned
    )


def _soft_names(source: Source, scope: Scope, networks: set[str]) -> set[str]:
    """Return the names of probabilities: what softmax, or a network that ends with it, returns.

    Those that become logarithms are left out.
    """
    pairs = [(written(target), value) for target, value, _ in assignments(scope)]
    logs = {name for name, value in pairs if made_by(value).endswith("log")}
    return {
        name
        for name, value in pairs
        if _is_softmax(source, value) or made_by(value) in networks - {""}
    } - logs


def _ends_with_softmax(source: Source, node: ast.expr) -> bool:
    """Return whether a value is a network, or a layer of Keras, with a softmax at the end."""
    if not isinstance(node, ast.Call):
        return False
    kind = source.dotted(node.func).rpartition(".")[2]
    if kind == "Sequential":
        return any(activation(source, one) == "Softmax" for one in layers_of(source, node)[-1:])
    if kind == "Model":
        outputs = argument(node, "outputs", 1)
        return outputs is not None and _is_softmax(source, resolved(source, node, outputs))
    return is_dense(node) and activation(source, node) == "Softmax"


def _is_loss(source: Source, node: ast.expr) -> bool:
    """Return whether a value is an object that applies a softmax and a cross-entropy."""
    return isinstance(node, ast.Call) and source.dotted(node.func).endswith("CrossEntropyLoss")


def _is_loss_of_logits(source: Source, node: ast.expr) -> bool:
    """Return whether a value is a loss of Keras `from_logits=True`, which applies a softmax."""
    if not isinstance(node, ast.Call) or "crossentropy" not in last_word(node.func).replace(
        "_", ""
    ):
        return False
    given = argument(node, "from_logits")
    return isinstance(given, ast.Constant) and given.value is True


def _is_softmax(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    inner = node.func.func if isinstance(node.func, ast.Call) else node.func
    last = (source.dotted(inner) or last_word(inner)).rpartition(".")[2]
    if isinstance(node.func, ast.Call) and activation(source, node.func) == "Softmax":
        return True
    return last in ("softmax", "Softmax") or (
        isinstance(inner, ast.Attribute) and inner.attr == "softmax"
    )


def _is_soft(source: Source, node: ast.expr, soft: set[str], networks: set[str]) -> bool:
    named = written(node) in soft - {""} or made_by(node) in networks - {""}
    return named or _is_softmax(source, node)


def _bounded_values(source: Source) -> Iterator[Hit]:
    for call, name in source.calls():
        if name.rpartition(".")[2] != "Sequential":
            continue
        *_, layer, last = [call, call, *layers_of(source, call)]
        kind = activation(source, last)
        layer = last if is_dense(last) else layer
        if kind and _is_layer_of_values(source, call, layer):
            yield Hit(last, f"the last layer of Q-values is {kind}")


def _is_layer_of_values(source: Source, call: ast.Call, layer: ast.expr) -> bool:
    """Return whether a layer has a Q-value for each action, or is the last of a network of them."""
    if _has_a_value_for_each_action(layer):
        return _is_of_values(source, call)
    size = size_of(layer)
    if size is None or number(size) is None:
        return False
    if number(size) == 1:
        return any(map(is_q, becomes(source, call)))
    return _is_of_values(source, call) and _is_whole(source, call)


def _is_whole(source: Source, call: ast.Call) -> bool:
    """Return whether layers are a whole network, and not a part that others follow.

    In a class, `forward` returns what they give; elsewhere, they have the name of Q-values.
    """
    inside, names = source.class_of(call), becomes(source, call)
    if inside is None:
        return any(is_q(name) and not has_word(name, *PARTS) for name in names)
    returned = returned_values(source, inside)
    return bool(returned) and all(one is not None and made_by(one) in names for one in returned)


def _bounded_returns(source: Source) -> Iterator[Hit]:
    """Find `return relu(self.out(x))` in a network of Q-values, also by way of names."""
    for node in source.nodes:
        inside = source.class_of(node) if isinstance(node, ast.Return) else None
        if not isinstance(node, ast.Return) or inside is None or not is_q(inside.name):
            continue
        value = last_value(source, node)
        match value:
            case ast.Call(func=func, args=[inner, *_]):
                kind = last_word(func)
            case ast.Call(func=ast.Attribute(attr=kind, value=inner)):
                pass
            case _:
                continue
        before = value if isinstance(node.value, ast.Name) else node
        made = resolved(source, before, inner)
        is_last = _is_from_layer_of_actions(source, inside, made) or (
            getattr(source.function_of(node), "name", "") in FORWARD
            and _is_from_last_layer(inside, made)
        )
        if kind in FUNCTIONS_OF_LAYERS and is_last:
            yield Hit(value, f"{kind} is applied to Q-values")


def _is_from_layer_of_actions(source: Source, inside: ast.ClassDef, made: ast.expr) -> bool:
    """Return whether a value is `self.out(x)` or `nn.Dense(n_actions)(x)`."""
    if not isinstance(made, ast.Call):
        return False
    if isinstance(made.func, ast.Call):
        return _has_a_value_for_each_action(made.func)
    return any(
        written(target) == written(made.func) and _has_a_value_for_each_action(value)
        for body in source.bodies
        if source.class_of(body) is inside
        for target, value, _ in assignments(body)
    )


def _is_from_last_layer(inside: ast.ClassDef, made: ast.expr) -> bool:
    """Return whether a value is what the last linear layer of a whole network gives."""
    layers = [
        (written(target), size)
        for method in inside.body
        if isinstance(method, ast.FunctionDef)
        for target, value, _ in assignments(method)
        if (size := size_of(value)) is not None
    ]
    if not layers or has_word(inside.name, *PARTS):
        return False
    name, size = layers[-1]
    return made_by(made) == name and not any(has_word(one, *SHARES) for one in names_in(size))


def _heads(source: Source) -> Iterator[Hit]:
    yield from _bounded_values(source)
    yield from _bounded_returns(source)


def _has_a_value_for_each_action(node: ast.expr) -> bool:
    size = size_of(node)
    names = names_in(size) if size is not None else set[str]()
    if any(has_word(name, *SHARES) for name in names):
        return False
    return any(has_word(name, "action", "act_dim") or name.endswith((".n", "_n")) for name in names)


def _is_of_values(source: Source, call: ast.Call) -> bool:
    """Return whether a network is of Q-values, by the name of its class or of what it becomes."""
    inside = source.class_of(call)
    names = [inside.name] if inside is not None else []
    return any(map(is_q, names + becomes(source, call)))


def is_q(name: str) -> bool:
    """Return whether a name is that of Q-values, or of a network of them."""
    last = name.rpartition(".")[2].lower()
    words = {word.rstrip("12") for word in last.split("_")}
    return "q" in words or has_word(last, "qval", "qnet", "dqn", "qfunction")


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
)
