"""What layers networks have, and what their `forward` returns."""

import ast
from collections.abc import Callable

from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    last_word,
    made_by,
    walk,
    written,
)

FORWARD = ("forward", "__call__", "call")
ACTIVATIONS = ("ReLU", "Softmax", "Tanh", "Sigmoid", "LeakyReLU", "ELU", "Softplus")
OF_KERAS = {name.lower(): name for name in ACTIVATIONS}  # as an argument of a layer


def ends_with_linear(source: Source, value: ast.expr) -> bool:
    """Return whether a value is a linear layer, or `Sequential` with one at the end."""
    if not isinstance(value, ast.Call):
        return False
    kind = source.dotted(value.func)
    if kind == "torch.nn.Sequential":
        layers = layers_of(source, value)
        return bool(layers) and ends_with_linear(source, layers[-1])
    return kind == "torch.nn.Linear"


def returned_values(source: Source, body: ast.ClassDef) -> list[ast.expr | None]:
    """Return what `forward` returns."""
    return [
        last_value(source, one)
        for method in body.body
        if isinstance(method, ast.FunctionDef) and method.name in FORWARD
        for one in walk(method)
        if isinstance(one, ast.Return)
    ]


def classes_that_return(source: Source, fits: Callable[[ast.expr], bool]) -> set[str]:
    """Return the names of classes whose `forward` always returns what a fitting part gives."""
    bodies = (body for body in source.bodies if isinstance(body, ast.ClassDef))
    return {body.name for body in bodies if _always_returns(source, body, fits)}


def _always_returns(source: Source, body: ast.ClassDef, fits: Callable[[ast.expr], bool]) -> bool:
    own = {
        written(target)
        for method in body.body
        if isinstance(method, ast.FunctionDef)
        for target, value, _ in assignments(method)
        if fits(value)
    }
    returned = returned_values(source, body)
    return bool(returned) and all(one is not None and made_by(one) in own for one in returned)


def names_that_are(source: Source, fits: Callable[[ast.expr], bool]) -> set[str]:
    """Return the names that are assigned what fits, and nothing else, and are no parameters."""
    found: dict[str, list[bool]] = {}
    for body in source.bodies:
        for target, value, _ in assignments(body):
            found.setdefault(written(target), []).append(fits(value))
    taken = {one.arg for one in source.nodes if isinstance(one, ast.arg)}
    return {name for name, fitting in found.items() if name and all(fitting)} - taken


def last_value(source: Source, statement: ast.Return) -> ast.expr | None:
    """Return what is returned; of a name, what it is set to just before."""
    value = statement.value
    return None if value is None else resolved(source, statement, value)


def resolved(source: Source, before: ast.AST, value: ast.expr) -> ast.expr:
    """Return a value; of a name, what it is set to last in the function, outside of branches."""
    scope, line = source.function_of(before), getattr(before, "lineno", 0)
    found = value
    if isinstance(value, ast.Name):
        for target, new, statement in assignments(scope):
            if written(target) == value.id and statement.lineno < line:
                plain = isinstance(statement, ast.Assign) and statement in scope.body
                found = new if plain else value
    return found


def returned_by(source: Source, value: ast.expr) -> ast.expr:
    """Return a value; of a call of the program's own function, what that returns."""
    own = [one for one in source.scopes if getattr(one, "name", "") == made_by(value) != ""]
    returned = [node for one in own for node in walk(one) if isinstance(node, ast.Return)]
    if len(own) != 1 or len(returned) != 1:
        return value
    return last_value(source, returned[0]) or value


def layers_of(source: Source, call: ast.Call) -> list[ast.expr]:
    """Return the layers of `Sequential`, also those of a list, or that `add` appends to it."""
    match call.args:
        case [ast.Starred(value=ast.Name(id=name)) as only]:
            scope = source.function_of(only)
            made = [v for target, v, _ in assignments(scope) if written(target) == name]
            return made[0].elts if len(made) == 1 and isinstance(made[0], ast.List) else []
        case [ast.List(elts=layers)]:
            return layers
        case []:
            return _added(source, call)
        case layers:
            return layers


def _added(source: Source, call: ast.Call) -> list[ast.expr]:
    """Return what `model.add(...)` appends to a model of Keras in the function that makes it."""
    names, scope = set(becomes(source, call)), source.function_of(call)
    return [
        one.args[0]
        for one, _ in source.calls(scope)
        if isinstance(one.func, ast.Attribute)
        and one.func.attr == "add"
        and written(one.func.value) in names - {""}
        and one.args
    ]


def activation(source: Source, node: ast.expr) -> str:
    """Return the name of an activation, also of one that a layer of Keras has; else empty."""
    if not isinstance(node, ast.Call):
        return ""
    name = source.dotted(node.func).rpartition(".")[2]
    if name in ACTIVATIONS:
        return name
    return OF_KERAS.get(_inside(source, node), "") if name == "Dense" else ""


def is_dense(node: ast.expr) -> bool:
    """Return whether a layer is a linear one of Keras or Flax, which can have an activation."""
    return isinstance(node, ast.Call) and last_word(node.func) == "dense"


def _inside(source: Source, dense: ast.Call) -> str:
    """Return the activation of `Dense(2, activation="softmax")` or `Dense(2, tf.nn.softmax)`."""
    given = argument(dense, "activation", 1)
    if isinstance(given, ast.Constant):
        return str(given.value)
    return "" if given is None else last_word(given)


def size_of(node: ast.expr) -> ast.expr | None:
    """Return the number of outputs of a linear layer; None for others."""
    if not isinstance(node, ast.Call):
        return None
    match last_word(node.func):
        case "linear":
            return argument(node, "out_features", 1)
        case "dense":
            return argument(node, "units") or argument(node, "features", 0)
        case _:
            return None


def becomes(source: Source, call: ast.Call) -> list[str]:
    """Return the names that a value is assigned to."""
    return [written(target) for target in getattr(source.parents[call], "targets", [])]
