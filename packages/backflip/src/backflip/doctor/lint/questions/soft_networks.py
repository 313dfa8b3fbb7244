"""Which networks of a program end with a softmax."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.layers import (
    activation,
    is_dense,
    last_value,
    layers_of,
    resolved,
    returned_values,
)
from backflip.doctor.lint.questions.makers import made_at
from backflip.doctor.lint.questions.origins import unplaced
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    argument,
    assignments,
    last_word,
    made_by,
    parameters,
    written,
)


def soft_networks(source: Source) -> set[str]:
    """Return the names of networks that end with a softmax; those of parameters by all calls."""
    classes, makers = soft_classes(source), _soft_makers(source)

    def is_soft(value: ast.expr) -> bool:
        made = unplaced(made_at(source, unplaced(value)))
        maker = last_word(made.func) if isinstance(made, ast.Call) else ""
        is_built = maker in makers or _ends_with_softmax(source, made)
        return is_built or made_by(made).rpartition(".")[2] in classes

    soft: dict[str, list[bool]] = {}
    for name, value in (*_named_values(source), *_given_values(source)):
        soft.setdefault(name, []).append(is_soft(value))
    return {name for name, found in soft.items() if name and all(found)}


def _named_values(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of a program, and what they are set to."""
    for body in source.bodies:
        for target, value, _ in assignments(body):
            yield written(target), value


def _given_values(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of parameters, and what calls give for them."""
    for scope in source.scopes:
        if isinstance(scope, FUNCTIONS):
            for one in parameters(scope):
                if one.arg not in ("self", "cls"):
                    yield from ((one.arg, value) for value in given_for(source, scope, one.arg))


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


def soft_classes(source: Source) -> set[str]:
    """Return the names of networks whose `forward` returns probabilities, always."""
    return {
        body.name
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and returns_softmax(source, body)
    }


def returns_softmax(source: Source, body: ast.ClassDef) -> bool:
    """Return whether `forward` of a network always returns probabilities."""
    own = {
        written(target)
        for method in body.body
        if isinstance(method, ast.FunctionDef)
        for target, value, _ in assignments(method)
        if _ends_with_softmax(source, value)
    }
    returned = returned_values(source, body)
    return bool(returned) and all(
        one and (is_softmax(source, one) or made_by(one) in own) for one in returned
    )


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
        return outputs is not None and is_softmax(source, resolved(source, node, outputs))
    return is_dense(node) and activation(source, node) == "Softmax"


def is_softmax(source: Source, node: ast.expr) -> bool:
    """Return whether a value is what a softmax gives: of a function, a method, or a layer."""
    if not isinstance(node, ast.Call):
        return False
    inner = node.func.func if isinstance(node.func, ast.Call) else node.func
    last = (source.dotted(inner) or last_word(inner)).rpartition(".")[2]
    if isinstance(node.func, ast.Call) and activation(source, node.func) == "Softmax":
        return True
    return last in ("softmax", "Softmax") or (
        isinstance(inner, ast.Attribute) and inner.attr == "softmax"
    )
