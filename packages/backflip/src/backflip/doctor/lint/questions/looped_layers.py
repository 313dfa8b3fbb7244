"""Layers that a loop adds to a network, one after the other."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.layers import OF_KERAS, activation, size_of
from backflip.doctor.lint.questions.values import defaults, given_for
from backflip.doctor.lint.source import FUNCTIONS, Scope, Source, last_word, walk, written

ADDING = ("append", "add")
UNBOUNDED = ("dropout", "layernorm")  # layers that may follow an activation


def last_of_loop(source: Source, call: ast.Call) -> tuple[ast.expr, str] | None:
    """Return the activation that every turn of a loop adds last to `Sequential`, and its kind.

    So is one that lines after the loop add. None where what is added cannot be seen.
    """
    scope, name = source.function_of(call), _list_of(source, call)
    loops = [node for node in walk(scope) if isinstance(node, ast.For) and _adds_to(node, name)]
    if not name or len(loops) != 1 or loops[0] not in scope.body:
        return None
    loop = loops[0]
    after = [one for one in scope.body if one.lineno > loop.lineno]
    added = [*_added(loop, name), *(part for one in after for part in _parts(one, name))]
    in_loop = sum(_is_name(one, name) for one in ast.walk(loop))
    linear = [one for one in added if size_of(one) is not None]
    if in_loop != _turns(loop, name) or not linear or _is_changed(source, after, name):
        return None
    kept = [one for one in added if last_word(getattr(one, "func", one)) not in UNBOUNDED]
    kind = _kind(source, scope, kept[-1])
    return (kept[-1], kind) if kind else None


def _list_of(source: Source, call: ast.Call) -> str:
    """Return the name of the list of `Sequential(*layers)`, or of the model that layers join."""
    match call.args:
        case [ast.Starred(value=ast.Name(id=name))] | [ast.Name(id=name)]:
            return name
        case []:
            parent = source.parents[call]
            return written(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
        case _:
            return ""


def _adds_to(loop: ast.For, name: str) -> bool:
    return any(True for _ in _added(loop, name))


def _added(loop: ast.For, name: str) -> Iterator[ast.expr]:
    """Yield what each turn of a loop adds to a list or a model."""
    for one in loop.body:
        yield from _parts(one, name)


def _turns(loop: ast.For, name: str) -> int:
    """Return how many lines of a loop add something in each turn."""
    return sum(bool(_parts(one, name)) for one in loop.body)


def _parts(line: ast.stmt, name: str) -> list[ast.expr]:
    match line:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=attr), args=[part])
        ) if of == name:
            if attr in ADDING:
                return [part]
            return part.elts if attr == "extend" and isinstance(part, ast.List) else []
        case ast.AugAssign(
            target=ast.Name(id=of), value=ast.List(elts=parts) | ast.Tuple(elts=parts)
        ) if of == name:
            return parts
        case _:
            return []


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_changed(source: Source, after: list[ast.stmt], name: str) -> bool:
    """Return whether lines do more with a list than to add to it, and to make it a network."""
    later = [one for one in after if not _parts(one, name)]
    reads = [node for one in later for node in ast.walk(one) if _is_name(node, name)]
    return not all(_is_whole(source, one) for one in reads)


def _is_whole(source: Source, read: ast.AST) -> bool:
    """Return whether a name is all that a network or a `return` gets."""
    parent = source.parents[read]
    parent = source.parents[parent] if isinstance(parent, ast.Starred) else parent
    match parent:
        case ast.Call(func=func, args=[_], keywords=[]):
            return last_word(func) == "sequential"
        case ast.Attribute(attr=attr):
            return attr in ("compile", "build", "summary")
        case _:
            return isinstance(parent, ast.Return)


def _kind(source: Source, scope: Scope, node: ast.expr) -> str:
    """Return the name of an activation: of `nn.ReLU()`, or `act()` of a parameter; else empty."""
    found = activation(source, node)
    if found or not isinstance(scope, FUNCTIONS) or not isinstance(node, ast.Call):
        return found
    name = written(node.func)
    if name not in {one.arg for one in scope.args.args + scope.args.kwonlyargs}:
        return ""
    given = list(given_for(source, scope, name))
    given = given or [one for one in [defaults(scope).get(name)] if one is not None]
    kinds = {OF_KERAS.get(last_word(one), "") for one in given}
    return kinds.pop() if len(kinds) == 1 else ""
