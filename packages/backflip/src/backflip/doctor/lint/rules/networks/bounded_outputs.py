"""Activations after the last layer of networks that give values as they are used: a part of L10.

No name tells that they are Q-values: an output is in a discounted target.
"""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.layers import (
    OF_KERAS,
    activation,
    layers_of,
    returned_values,
)
from backflip.doctor.lint.questions.value_uses import gives_values
from backflip.doctor.lint.questions.values import defaults
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    assignments,
    last_word,
    made_by,
    parameters,
    written,
)

FUNCTIONS_OF_LAYERS = ("relu", "softmax", "tanh", "sigmoid")
OUTPUT = {"final", "last", "out", "output", "head"}  # in names of parameters
ACTIVATION = {"act", "activation", "nonlinearity", "fn"}
SHAPED = ("squeeze", "flatten", "view", "reshape", "float", "ravel", "cat", "stack", "concat")


def bounded_outputs(source: Source) -> Iterator[Hit]:
    """Find what `forward` returns of a class whose networks give values, if it is bounded."""
    for inside in source.bodies:
        if not isinstance(inside, ast.ClassDef):
            continue
        returned = [one for one in returned_values(source, inside) if one is not None]
        found = [hit for one in returned for hit in _bounded(source, inside, one)]
        if found and gives_values(source, inside):
            yield from {hit.node: hit for hit in found}.values()


def _bounded(source: Source, inside: ast.ClassDef, returned: ast.expr) -> Iterator[Hit]:
    """Yield the activations that a returned value ends with: a function, or a network's layer."""
    networks = {
        written(target): value
        for method in inside.body
        if isinstance(method, ast.FunctionDef)
        for target, value, _ in assignments(method)
        if written(target).startswith("self.")
    }
    for call, owner in _last_calls(source, returned, {}):
        if last_word(call.func) in FUNCTIONS_OF_LAYERS:
            yield Hit(call, f"{last_word(call.func)} is applied to Q-values")
        elif owner in networks:
            for last, kind in _last_layers(source, networks[owner]):
                yield Hit(last, f"the last layer of Q-values is {kind}")


def _last_calls(
    source: Source, node: ast.expr, loops: dict[str, str]
) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls that give a value, or its parts, and the name of what is called.

    Args:
        source: the program.
        node: the value.
        loops: what the names of comprehensions around it go through.
    """
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            inner = parts
        case (
            ast.ListComp(elt=element, generators=[one])
            | ast.GeneratorExp(elt=element, generators=[one])
        ):
            inner, loops = [element], loops | {written(one.target): written(one.iter)}
        case ast.Subscript(value=whole):
            inner = [whole]
        case ast.Call(func=ast.Attribute(value=owner) as func, args=args) if (
            last_word(func) in SHAPED
        ):
            of_package = written(owner).partition(".")[0] in source.imports
            inner = args[:1] if of_package else [owner]
        case ast.Call():
            yield node, loops.get(written(node.func), written(node.func))
            return
        case _:
            return
    for one in inner:
        yield from _last_calls(source, one, loops)


def _last_layers(source: Source, value: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Yield the activations at the end of a network, or of each network in a list."""
    match value:
        case ast.ListComp(elt=element):
            yield from _last_layers(source, element)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for one in parts:
                yield from _last_layers(source, one)
        case ast.Call(func=func, args=[inner]) if last_word(func) == "modulelist":
            yield from _last_layers(source, inner)
        case ast.Call(func=func) if last_word(func) == "sequential":
            for last in layers_of(source, value)[-1:]:
                if kind := activation(source, last):
                    yield last, kind
        case ast.Call():
            for name, given in named_arguments(source, value):
                if kind := last_activation(name, given):
                    yield given, kind
        case _:
            pass


def last_activation(name: str, value: ast.expr) -> str:
    """Return the activation that a parameter sets at the end of a network; else empty."""
    words = set(name.lower().split("_"))
    is_last = words & OUTPUT and words & ACTIVATION
    kind = OF_KERAS.get(_kind(value), "")
    return kind if is_last or name.lower() in ("final", "last") else ""


def _kind(value: ast.expr) -> str:
    """Return what an activation is called, in lower case: `nn.Tanh`, `nn.Tanh()` or "tanh"."""
    match value:
        case ast.Constant(value=str() as text):
            return text.lower()
        case ast.Call(func=func):
            return last_word(func)
        case _:
            return last_word(value)


def named_arguments(source: Source, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a call by name, also by place and by default of an own function."""
    given = {one.arg: one.value for one in call.keywords if one.arg}
    own = [one for one in source.scopes if getattr(one, "name", "") == made_by(call) != ""]
    if len(own) == 1 and isinstance(own[0], FUNCTIONS):
        places = (one.arg for one in parameters(own[0]))
        given = defaults(own[0]) | dict(zip(places, call.args, strict=False)) | given
    yield from given.items()
