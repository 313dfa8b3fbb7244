"""L09: softmaxes that are applied twice, or not at all."""

import ast
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from backflip.doctor.lint.questions.layers import (
    activation,
    classes_that_return,
    ends_with_linear,
    is_dense,
    last_value,
    layers_of,
    names_that_are,
    resolved,
    returned_values,
)
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    calls_method,
    last_word,
    made_by,
    origins,
    written,
)

CROSS_ENTROPIES = (
    "cross_entropy",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
)
TF_LOSSES = ("softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits")
OF_SIGMOIDS = ("binary_cross_entropy_with_logits", "sigmoid_binary_cross_entropy")
SIGMOIDS = ("sigmoid", "expit")
TWICE = "the loss applies a softmax to the output of a softmax"


class Names(NamedTuple):
    """Names of a scope.

    Attributes:
        networks: networks that end with a softmax.
        soft: probabilities.
        logits: logits.
        losses: losses whose first argument is logits.
        keras_losses: losses of Keras whose second argument is logits.
    """

    networks: set[str]
    soft: set[str]
    logits: set[str]
    losses: set[str]
    keras_losses: set[str]


def _softmaxes(source: Source) -> Iterator[Hit]:
    made = [(t, v) for body in source.bodies for t, v, _ in assignments(body)]
    losses = {written(t) for t, v in made if _is_loss(source, v)} - {""}
    keras_losses = {written(t) for t, v in made if _is_loss_of_logits(v)} - {""}
    classes, networks, raw = _soft_classes(source), _soft_networks(source), _raw_networks(source)
    for scope in source.scopes:
        inside = source.class_of(scope)
        own = {"self", "self.forward"} if inside is not None and inside.name in classes else set()
        soft = _soft_names(source, scope, networks | own)
        logits = _named_logits(scope) - soft
        names = Names(networks | own, soft, logits, losses, keras_losses)
        for call, name in source.calls(scope):
            seen = _mistaken(source, call, name, names)
            if seen:
                yield Hit(call, seen)
        yield from _raw_probabilities(source, scope, raw)
        yield from _double_sigmoids(source, scope, made)


def _double_sigmoids(
    source: Source, scope: Scope, made: list[tuple[ast.expr, ast.expr]]
) -> Iterator[Hit]:
    """Find `binary_cross_entropy_with_logits(torch.sigmoid(x), y)`."""
    losses = {written(t) for t, v in made if made_by(v).endswith("BCEWithLogitsLoss")} - {""}
    values: dict[str, list[ast.expr]] = {}
    for target, value, _ in assignments(scope):
        values.setdefault(written(target) or "-", []).append(value)
    for call, name in source.calls(scope):
        is_loss = name.endswith(OF_SIGMOIDS) or written(call.func) in losses
        given = argument(call, "input", 0) if is_loss else None
        known = values.get(written(given), []) if given is not None else []
        plain = known[0] if len(known) == 1 else given
        if isinstance(plain, ast.Call) and last_word(plain.func) in SIGMOIDS:
            yield Hit(call, "the loss applies a sigmoid to the output of a sigmoid")


def _named_logits(scope: Scope) -> set[str]:
    return {
        written(target)
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call) and last_word(target) == "logits"
    }


def _mistaken(source: Source, call: ast.Call, name: str, names: Names) -> str:
    """Return what is wrong with the call of a distribution or a loss; empty if nothing is."""
    given, first = _logits_of(source, call, name), call.args[0] if call.args else None
    if given is not None and _is_soft(source, given, names):
        return "`logits` gets the output of a softmax"
    if calls_method(call, "compile"):
        return TWICE if _compiles_twice(call, names) else ""
    if first is None:
        return ""
    last = name.rpartition(".")[2]
    is_loss = written(call.func) in names.losses or _is_loss(source, call.func)
    if last in CROSS_ENTROPIES or is_loss:
        return TWICE if _is_soft(source, first, names) else ""
    if _is_loss_of_logits(call) or written(call.func) in names.keras_losses:
        predicted = argument(call, "y_pred", 1)
        return TWICE if predicted is not None and _is_soft(source, predicted, names) else ""
    if name.startswith("torch") and last == "Categorical" and written(first) in names.logits:
        return "the first argument of `Categorical` is `probs`, not `logits`"
    return ""


def _compiles_twice(call: ast.Call, names: Names) -> bool:
    """Return whether a model of Keras with a softmax at its end gets a loss of logits."""
    loss = argument(call, "loss", 1)
    of_logits = loss is not None and (
        _is_loss_of_logits(loss) or written(loss) in names.keras_losses
    )
    is_model = isinstance(call.func, ast.Attribute) and written(call.func.value) in names.networks
    return of_logits and is_model


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


def _soft_parts(source: Source, scope: Scope) -> set[str]:
    """Return the names of probabilities in `probs, value = model(obs)`, by the place in a tuple."""
    classes = {body.name: body for body in source.bodies if isinstance(body, ast.ClassDef)}
    made: dict[str, list[str]] = {}
    for body in source.bodies:
        for target, value, _ in assignments(body):
            made.setdefault(written(target), []).append(made_by(value))
    found = set[str]()
    for target, value, _ in assignments(scope):
        kinds = made.get(made_by(value), [])
        if not isinstance(target, ast.Tuple) or len(set(kinds)) != 1 or kinds[0] not in classes:
            continue
        returned = returned_values(source, classes[kinds[0]])
        for place, one in enumerate(target.elts):
            parts = [
                of.elts[place]
                for of in returned
                if isinstance(of, ast.Tuple) and len(of.elts) == len(target.elts)
            ]
            soft = [
                any(_is_softmax(source, x) for x in origins(source.function_of(part), part))
                for part in parts
            ]
            if parts and len(parts) == len(returned) and all(soft):
                found.add(written(one))
    return found - {""}


def _apply_functions(source: Source) -> set[str]:
    """Return `apply` and `apply_fn` of Flax, if the only network of the program gives a softmax."""
    if not source.imports_any("flax"):
        return set()
    modules = [
        body
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and returned_values(source, body)
    ]
    is_soft = len(modules) == 1 and _returns_softmax(source, modules[0])
    return {"apply", "apply_fn"} if is_soft else set()


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
    applied = _apply_functions(source)
    found = {
        name
        for name, value in pairs
        if _is_softmax(source, value)
        or made_by(value) in networks - {""}
        or (isinstance(value, ast.Call) and last_word(value.func) in applied)
    } - logs
    return found | (_soft_parts(source, scope) - logs)


def _ends_with_softmax(source: Source, node: ast.expr) -> bool:
    """Return whether a value is a network, or a layer of Keras, with a softmax at the end."""
    if not isinstance(node, ast.Call):
        return False
    kind = source.dotted(node.func).rpartition(".")[2]
    if kind == "Softmax" and source.imports_any("torch"):
        return True
    if kind == "Sequential":
        return any(activation(source, one) == "Softmax" for one in layers_of(source, node)[-1:])
    if kind == "Model":
        outputs = argument(node, "outputs", 1)
        return outputs is not None and _is_softmax(source, resolved(source, node, outputs))
    return is_dense(node) and activation(source, node) == "Softmax"


def _is_loss(source: Source, node: ast.expr) -> bool:
    """Return whether a value is an object that applies a softmax and a cross-entropy."""
    return isinstance(node, ast.Call) and source.dotted(node.func).endswith("CrossEntropyLoss")


def _is_loss_of_logits(node: ast.expr) -> bool:
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


def _is_soft(source: Source, node: ast.expr, names: Names) -> bool:
    named = written(node) in names.soft - {""} or made_by(node) in names.networks - {""}
    return named or _is_softmax(source, node)


RULES = (
    Rule(
        "L09",
        "a softmax or sigmoid twice, or not at all",
        "Probabilities taken for logits make a policy that is nearly uniform and cannot become "
        "certain: between the best and the worst action of two there is a factor of e.",
        "Pass the output of the last linear layer as `logits=`.",
        "Stack Overflow, many; PyTorch, documentation of CrossEntropyLoss",
        _softmaxes,
    ),
)
