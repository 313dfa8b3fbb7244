"""Functions that copy the weights of one network into another."""

import ast
from functools import lru_cache
from typing import NamedTuple

from backflip.doctor.lint.source import (
    FUNCTIONS,
    ONE_FILE,
    Function,
    Source,
    assignments,
    names_in,
    parameters,
    walk,
    written,
)

LOADS = {"load_state_dict": "state_dict", "set_weights": "get_weights"}
FILLS = ("assign", "copy_")


class Copy(NamedTuple):
    """A copy of weights.

    Attributes:
        into: the network that gets them, as it is written.
        of: the network that they are of.
    """

    into: str
    of: str


def loaded(node: ast.AST) -> Copy | None:
    """Return what `a.load_state_dict(b.state_dict())` or `a.set_weights(b.get_weights())` does."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=into, attr=load),
            args=[ast.Call(func=ast.Attribute(value=of, attr=read)), *_],
        ) if LOADS.get(load) == read:
            return Copy(written(into), written(of))
        case _:
            return None


def filled(function: Function) -> Copy | None:
    """Return what `for p, q in zip(a.parameters(), b.parameters()): p.assign(q)` does.

    Names of lists that the function makes just before stand for the networks that these are of.
    """
    made = {written(target): value for target, value, _ in assignments(function)}
    for loop in walk(function):
        match loop:
            case ast.For(
                target=ast.Tuple(elts=[first, second]),
                iter=ast.Call(func=ast.Name(id="zip"), args=[one, other]),
            ):
                owners = {
                    written(first): _owner(made.get(written(one), one)),
                    written(second): _owner(made.get(written(other), other)),
                }
                into = _filled_name(loop) & set(owners)
                if len(into) == 1:
                    name = into.pop()
                    rest = [owner for own, owner in owners.items() if own != name]
                    return Copy(owners[name], rest[0]) if len(rest) == 1 else None
            case _:
                pass
    return None


def _owner(node: ast.expr) -> str:
    """Return what parameters are of: `self` of `self.model.trainable_variables`."""
    plain = node.func if isinstance(node, ast.Call) else node
    return written(plain).rpartition(".")[0]


def _filled_name(loop: ast.For) -> set[str]:
    """Return the first parts of what a loop copies into whole: `p` of `p.data.copy_(q)`."""
    return {
        written(node.func.value).partition(".")[0]
        for node in walk(loop)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in FILLS
        and not any(isinstance(one, ast.BinOp) for one in ast.walk(node))
    }


@lru_cache(maxsize=ONE_FILE)
def copiers(source: Source) -> dict[str, tuple[Function, Copy]]:
    """Return the functions of a program that copy weights whole, by name."""
    found: dict[str, tuple[Function, Copy]] = {}
    for scope in source.scopes:
        if isinstance(scope, FUNCTIONS) and scope.name != "__init__":
            copies = [copy for node in walk(scope) if (copy := loaded(node)) is not None]
            copy = copies[0] if len(copies) == 1 else filled(scope)
            if copy is not None:
                found[scope.name] = scope, copy
    return found


def copied(source: Source, call: ast.Call) -> Copy | None:
    """Return which network a call copies into which; None if it copies none that can be seen."""
    if (plain := loaded(call)) is not None:
        return plain
    known = copiers(source).get(written(call.func).rpartition(".")[2])
    if known is None:
        return None
    function, copy = known
    names = [one.arg for one in parameters(function)]
    given = list(map(written, call.args))
    if names[:1] == ["self"]:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        given = [written(owner), *given]
    stands_for = dict(zip(names, given, strict=False))
    return Copy(_replaced(copy.into, stands_for), _replaced(copy.of, stands_for))


def _replaced(name: str, stands_for: dict[str, str]) -> str:
    """Return what a name stands for where its function is called."""
    first, dot, rest = name.partition(".")
    return stands_for.get(first, first) + dot + rest


def is_used(source: Source, name: str) -> bool:
    """Return whether a program names a function: it calls it, hands it on, or has it as text."""
    return any(
        (isinstance(node, ast.Name | ast.Attribute) and name in names_in(node))
        or (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.Constant) and node.value == name)
        for node in source.nodes
    )
