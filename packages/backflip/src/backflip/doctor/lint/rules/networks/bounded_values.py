"""L10: activations after Q-values."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.built_networks import (
    bootstraps_by,
    builder_of,
    built_names,
    picks_outputs,
)
from backflip.doctor.lint.questions.layers import (
    FORWARD,
    activation,
    becomes,
    is_dense,
    last_value,
    layers_of,
    resolved,
    returned_values,
    size_of,
)
from backflip.doctor.lint.questions.looped_layers import last_of_loop
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.networks.bounded_outputs import (
    FUNCTIONS_OF_LAYERS,
    bounded_outputs,
    last_activation,
    named_arguments,
)
from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    has_word,
    is_discount,
    last_word,
    made_by,
    names_in,
    number,
    written,
)

PARTS = ("feature", "body", "trunk", "encoder", "base", "torso", "hidden", "stem", "embed")
SHARES = ("atom", "quantile", "bins", "support")  # outputs are probabilities of values then


def _bounded_values(source: Source) -> Iterator[Hit]:
    for call, name in source.calls():
        if name.rpartition(".")[2] != "Sequential":
            continue
        *_, layer, last = [call, call, *layers_of(source, call)]
        kind = activation(source, last)
        layer = last if is_dense(last) else layer
        if kind and _is_layer_of_values(source, call, layer):
            yield Hit(last, f"the last layer of Q-values is {kind}")
            continue
        looped = last_of_loop(source, call)
        if looped is not None and _is_whole(source, call):
            yield Hit(looped[0], f"the last layer of Q-values is {looped[1]}")


def _is_layer_of_values(source: Source, call: ast.Call, layer: ast.expr) -> bool:
    """Return whether a layer has a Q-value for each action, or is the last of a network of them."""
    if _has_a_value_for_each_action(layer):
        return _is_of_values(source, call)
    size = size_of(layer)
    if size is None or any(has_word(name, *SHARES) for name in names_in(size)):
        return False
    if number(size) is None and source.class_of(call) is None:
        return _is_built_for_values(source, call)
    if number(size) == 1:
        return any(map(is_q, becomes(source, call)))
    return _is_of_values(source, call) and _is_whole(source, call)


def _is_whole(source: Source, call: ast.Call) -> bool:
    """Return whether layers are a whole network, and not a part that others follow.

    In a class, `forward` returns what they give; elsewhere, they have the name of Q-values.
    """
    inside, names = source.class_of(call), becomes(source, call)
    if inside is None or builder_of(source, call) is not None:
        own = any(is_q(name) and not has_word(name, *PARTS) for name in names)
        return own or _is_built_for_values(source, call)
    if not _holds_q(source, inside):
        return False
    returned = returned_values(source, inside)
    return bool(returned) and all(one is not None and made_by(one) in names for one in returned)


def _is_built_for_values(source: Source, call: ast.Call) -> bool:
    """Return whether an own function builds a network of Q-values, by name or as it is used."""
    builder = builder_of(source, call)
    names = becomes(source, call) if builder is None else built_names(source, builder)
    return any(
        (is_q(name) and not has_word(name, *PARTS) and picks_outputs(source, name))
        or bootstraps_by(source, name)
        for name in names
        if name
    ) or (builder is not None and is_q(builder.name) and not has_word(builder.name, *PARTS))


def _bounded_returns(source: Source) -> Iterator[Hit]:
    """Find `return relu(self.out(x))` in a network of Q-values, also by way of names."""
    for node in source.nodes:
        inside = source.class_of(node) if isinstance(node, ast.Return) else None
        if not isinstance(node, ast.Return) or inside is None or not _holds_q(source, inside):
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


def _bounded_layers(source: Source) -> Iterator[Hit]:
    """Find `Dense(n_actions, activation="relu")` that `call` of a network of Q-values ends with."""
    for inside in (body for body in source.bodies if isinstance(body, ast.ClassDef)):
        last = {made_by(one) for one in returned_values(source, inside) if one is not None}
        for method in inside.body:
            if not isinstance(method, ast.FunctionDef) or not _holds_q(source, inside):
                continue
            for target, value, _ in assignments(method):
                kind = activation(source, value) if is_dense(value) else ""
                if kind and written(target) in last and _has_a_value_for_each_action(value):
                    yield Hit(value, f"the last layer of Q-values is {kind}")


def _bounded_models(source: Source) -> Iterator[Hit]:
    """Find `Model(x, Dense(n, activation="relu")(h))` whose largest output is the action.

    The program discounts, and fits the model to numbers.
    """
    if not source.imports_any("tensorflow", "keras") or "argmax" not in source.calls_of:
        return
    if not any(map(is_discount, (name for node in source.nodes for name in _name_of(node)))):
        return
    losses = {
        str(getattr(argument(call, "loss", 1), "value", ""))
        for call in source.calls_of.get("compile", ())
    }
    if not losses & {"mse", "mean_squared_error", "huber"}:
        return
    for call, name in source.calls():
        outputs = argument(call, "outputs", 1) if name.rpartition(".")[2] == "Model" else None
        made = None if outputs is None else resolved(source, call, outputs)
        layer = made.func if isinstance(made, ast.Call) else None
        kind = activation(source, layer) if isinstance(layer, ast.Call) and is_dense(layer) else ""
        if kind and isinstance(layer, ast.Call) and number(size_of(layer)) != 1:
            yield Hit(layer, f"the last layer of Q-values is {kind}")


def _bounded_builds(source: Source) -> Iterator[Hit]:
    """Find `self.q = mlp([n, 64, 1], final=nn.Tanh)`, by the name of the parameter."""
    for call, _ in source.calls():
        if not any(is_q(name) or has_word(name, "critic") for name in becomes(source, call)):
            continue
        for name, value in named_arguments(source, call):
            kind = last_activation(name, value)
            if kind:
                yield Hit(value, f"the last layer of Q-values is {kind}")


def _name_of(node: ast.AST) -> list[str]:
    word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
    return [word] if isinstance(word, str) else []


def _holds_q(source: Source, inside: ast.ClassDef) -> bool:
    """Return whether a class is a network of Q-values: by its name, or as the model of a DQN."""
    if is_q(inside.name):
        return True
    owners = [source.class_of(call) for call in source.calls_of.get(inside.name.lower(), ())]
    return bool(owners) and all(one is not None and is_q(one.name) for one in owners)


def _heads(source: Source) -> Iterator[Hit]:
    found = [
        *_bounded_values(source),
        *_bounded_returns(source),
        *_bounded_layers(source),
        *_bounded_models(source),
        *_bounded_builds(source),
    ]
    yield from found or bounded_outputs(source)


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
    return any(map(is_q, names + becomes(source, call))) or _is_built_for_values(source, call)


def is_q(name: str) -> bool:
    """Return whether a name is that of Q-values, or of a network of them."""
    last = name.rpartition(".")[2].lower()
    words = {word.rstrip("12") for word in last.split("_")}
    return "q" in words or has_word(last, "qval", "qnet", "dqn", "qfunction")


RULES = (
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
