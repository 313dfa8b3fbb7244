"""Loops in which a network is set to evaluation mode, learns, and is never set back: part of L08.

`net.train()` stands before the loop, so only the part before the first `net.eval()` is right.
"""

import ast
from collections.abc import Iterator, Sequence

from backflip.doctor.lint.questions.makers import made_at
from backflip.doctor.lint.source import (
    FUNCTIONS,
    INNER,
    LOOPS,
    Function,
    Scope,
    Source,
    argument,
    assignments,
    last_word,
    made_by,
    walk,
    written,
)


def learns(code: Sequence[ast.AST], learning: set[str]) -> bool:
    """Return whether code calls what computes gradients; a function in it is not called there."""
    return any(
        isinstance(one, ast.Call) and last_word(one.func) in learning
        for part in code
        for one in (part, *walk(part))
    )


def callers(source: Source, wanted: set[str]) -> set[str]:
    """Return some names of functions, and those of functions that call one of them, at any step."""
    found = set(wanted)
    while True:
        more = {
            scope.name.lower()
            for scope in source.scopes
            if isinstance(scope, FUNCTIONS) and learns([scope], found)
        }
        if more <= found:
            return found
        found |= more


def as_called(scope: Function, call: ast.Call, name: str) -> str:
    """Return what a name of a function is where the function is called."""
    first, _, rest = name.partition(".")
    places = [one.arg for one in (*scope.args.posonlyargs, *scope.args.args)]
    if first not in places:
        return name
    place, is_bound = places.index(first), places[0] in ("self", "cls")
    if is_bound and scope.name == "__call__":
        given = call.func if place == 0 else argument(call, first, place - 1)
    elif is_bound and isinstance(call.func, ast.Attribute):
        given = call.func.value if place == 0 else argument(call, first, place - 1)
    else:
        given = argument(call, first, place)
    return ".".join(part for part in (written(given) if given else "", rest) if part)


def calls_to(source: Source, scope: Function) -> list[ast.Call]:
    """Return the calls of a function by its name; of `__call__`, those of the only object."""
    if scope.name != "__call__":
        return source.calls_of.get(scope.name.lower(), [])
    inside = source.class_of(scope)
    return [
        call
        for call, _ in source.calls()
        if inside is not None
        and isinstance(call.func, ast.Name | ast.Attribute)
        and made_by(made_at(source, call.func)) == inside.name
    ]


def is_forgotten(
    source: Source, call: ast.Call, name: str, trains: list[ast.Call], learning: set[str]
) -> bool:
    """Return whether a loop sets a network that learns in it to evaluation mode, and never back.

    The program must set the same network to training mode elsewhere, so it is one that learns.
    """
    own = {word for one in trains if (word := _network(one))}
    for loop, names in _loops_around(source, call, [name], set()):
        if not learns([loop], learning):
            continue
        setters = _setters(source, trains, source.function_of(loop))
        if setters is None:
            return False
        is_set_back = learns([loop], setters) or any(one in trains for one in walk(loop))
        made = {written(target) for target, _, _ in assignments(loop)}
        known = {one.rpartition(".")[2] for one in names} & own
        return not is_set_back and bool(known) and names[-1] not in made
    return False


def _network(call: ast.Call) -> str:
    """Return the last word of the network whose method is called."""
    return last_word(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _setters(source: Source, trains: list[ast.Call], around: Scope) -> set[str] | None:
    """Return the functions that set something to training mode.

    It is None if one of them is not seen to be called, and may be, by other files or as a callback.

    Args:
        source: the program.
        trains: the calls that do it.
        around: the function of a loop, which is no part of that loop.
    """
    found = set[str]()
    for scope in {source.function_of(one) for one in trains} - {around}:
        if not isinstance(scope, FUNCTIONS):
            continue
        inside = source.class_of(scope)
        name = inside.name if scope.name == "__init__" and inside is not None else scope.name
        if name.lower() in source.calls_of:
            found.add(name.lower())
        elif inside is not None or any(last_word(one) == name.lower() for one in source.nodes):
            return None
    return callers(source, found)


def _loops_around(
    source: Source, node: ast.AST, names: list[str], seen: set[ast.AST]
) -> Iterator[tuple[ast.stmt, list[str]]]:
    """Yield the loops around a line, also where its function is called, the innermost first.

    With each come the names that the network has on the way to it.
    """
    scope = source.function_of(node)
    while node is not scope:
        node = source.parents[node]
        if isinstance(node, LOOPS):
            yield node, names
        if isinstance(node, INNER) and node is not scope:
            return
    if isinstance(scope, FUNCTIONS) and scope not in seen:
        for call in calls_to(source, scope):
            yield from _loops_around(
                source, call, [*names, as_called(scope, call, names[-1])], seen | {scope}
            )
