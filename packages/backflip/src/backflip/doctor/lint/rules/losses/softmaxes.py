"""L09: softmaxes that are applied twice, or not at all."""

import ast
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from backflip.doctor.lint.questions.layers import (
    classes_that_return,
    ends_with_linear,
    names_that_are,
    returned_values,
)
from backflip.doctor.lint.questions.soft_networks import (
    is_softmax,
    returns_softmax,
    soft_classes,
    soft_networks,
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
    classes, networks, raw = soft_classes(source), soft_networks(source), _raw_networks(source)
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
                any(is_softmax(source, x) for x in origins(source.function_of(part), part))
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
    is_soft = len(modules) == 1 and returns_softmax(source, modules[0])
    return {"apply", "apply_fn"} if is_soft else set()


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
        if is_softmax(source, value)
        or made_by(value) in networks - {""}
        or (isinstance(value, ast.Call) and last_word(value.func) in applied)
    } - logs
    return found | (_soft_parts(source, scope) - logs)


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


def _is_soft(source: Source, node: ast.expr, names: Names) -> bool:
    named = written(node) in names.soft - {""} or made_by(node) in names.networks - {""}
    return named or is_softmax(source, node)


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
