"""What a program's own functions and lines put into arrays and lists: `insert(obs, act, new)`."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from backflip.doctor.lint.source import (
    FUNCTIONS,
    VERSIONS_KEPT,
    Function,
    Scope,
    Source,
    arguments,
    assignments,
    names_in,
    parameters,
    unconverted,
    walk,
    written,
)

FEWEST = 4  # parts of a transition
KEEPING = ("append", "add", "push", "put", "extend")
FOLLOWED = 3  # loops over rows, and over the parts of a row


class Row(NamedTuple):
    """What is written at one place of several arrays.

    Attributes:
        last: the last of the lines.
        parts: what they write.
    """

    last: ast.stmt
    parts: list[ast.expr]


def calls_a_store(source: Source, call: ast.Call) -> bool:
    """Return whether a call is of an own function that stores what it is given."""
    name = written(call.func).rpartition(".")[2]
    return name in _storing_functions(source) and len(arguments(call)) >= FEWEST


@lru_cache(maxsize=VERSIONS_KEPT)
def _storing_functions(source: Source) -> set[str]:
    """Return the names of own functions that put many of their parameters into containers."""
    named: dict[str, list[bool]] = {}
    for scope in source.scopes:
        if isinstance(scope, FUNCTIONS):
            named.setdefault(scope.name, []).append(_stores_parameters(scope))
    return {name for name, stores in named.items() if all(stores)}


def _stores_parameters(function: Function) -> bool:
    """Return whether a function keeps four of its parameters, or all of `*parts` or `**parts`."""
    given = {one.arg for one in parameters(function)} - {"self", "cls"}
    many = {one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None}
    kept = _kept_names(function)
    return len(given & kept) >= FEWEST or bool(many & kept)


def _kept_names(scope: Scope) -> set[str]:
    """Return the names that a function puts into containers, as they are.

    So are what a loop goes over if its variables are: `for row in zip(obs, actions)`.
    """
    names = {name for value in _kept(scope) for name in _plain_names(value)}
    for _ in range(FOLLOWED):
        for node in walk(scope):
            if isinstance(node, ast.For) and names & names_in(node.target):
                names |= names_in(node.iter)
        for target, value, _ in assignments(scope):
            if isinstance(target, ast.Name) and target.id in names:
                names |= _plain_names(value)
    return names


def _kept(scope: Scope) -> Iterator[ast.expr]:
    """Yield what is written at a place of a container, or appended to one."""
    for target, value, _ in assignments(scope):
        if isinstance(target, ast.Subscript):
            yield value
    for node in walk(scope):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in KEEPING:
                yield from arguments(node)
            case _:
                pass


def _plain_names(value: ast.expr) -> set[str]:
    """Return the name that a value is, in any type and shape, or those of the parts of a row."""
    match unconverted(value):
        case ast.Subscript(value=inner):
            return _plain_names(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return {name for one in parts for name in _plain_names(one)}
        case ast.Call(func=ast.Name(id=name)) as call if name[0].isupper() or name == "dict":
            return {name for one in arguments(call) for name in _plain_names(one)}
        case plain:
            return {written(plain)} - {""}


def rows_written(scope: Scope) -> Iterator[Row]:
    """Yield what `states[i] = x` and `actions.append(a)`, lines of one block, write."""
    for node in (scope, *walk(scope)):
        block = getattr(node, "body", None)
        lines = block if isinstance(block, list) else []
        writes = [one for one in lines if _writes_a_part(one)]
        if len(writes) >= FEWEST:
            yield Row(writes[-1], [part for one in writes for part in _parts(one)])


def _writes_a_part(line: ast.stmt) -> bool:
    match line:
        case ast.Assign(targets=[ast.Subscript() | ast.Tuple(elts=[ast.Subscript(), *_])]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[_])):
            return True
        case _:
            return False


def _parts(line: ast.stmt) -> list[ast.expr]:
    match line:
        case ast.Assign(value=ast.Tuple(elts=parts)):
            return parts
        case ast.Assign(value=value) | ast.Expr(value=ast.Call(args=[value])):
            return [value]
        case _:
            return []
