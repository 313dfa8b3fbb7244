"""What a program keeps of a vector of Stable-Baselines3 that it steps by hand: a part of L04.

Such a vector resets itself: the observation that `step` returns at an end is that after the reset.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from backflip.doctor.lint.questions.sb3 import is_vector
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Scope,
    Source,
    arguments,
    assignments,
    factors,
    has_word,
    is_discount,
    last_word,
    names_in,
    unconverted,
    walk,
    written,
)

STEPS = ("step", "step_wait")
COPIES = ("copy", "deepcopy", "clone", "ravel", "flatten")
SHOWS = ("print", "log", "debug", "info", "record_video", "render", "imshow", "predict")
LIMIT = "TimeLimit.truncated"


class _Flow(NamedTuple):
    """The names of one function that hold parts of what `step` returns.

    Attributes:
        before: observations that the step began with.
        after: observations that it returned, and nothing else.
        ends: whether episodes ended, and what is made of that.
    """

    before: set[str]
    after: set[str]
    ends: set[str]


def successors_of_sb3(source: Source) -> Iterator[Hit]:
    """Find states that are stored with the observation after a reset, and bootstraps from it.

    Where all ends are stored, and no time limit is told apart, they mask it.
    """
    if not source.imports_any("stable_baselines3", "sb3_contrib"):
        return
    for scope in source.scopes:
        for names in _steps(source, scope):
            flow = _flow(scope, names)
            if flow is None:
                continue
            for node, parts in _kept(source, scope, flow):
                masked = any(flow.ends & names_in(one) for one in parts)
                chosen = any(flow.ends & names_in(one) for one in _tests(source, node))
                if not chosen and (LIMIT in source.text or not masked):
                    yield Hit(node, "the successor of the last observation is that after the reset")
            if LIMIT in source.text:
                yield from _bootstraps(scope, flow)


def _steps(source: Source, scope: Scope) -> Iterator[list[ast.expr]]:
    """Yield the four names of `obs, rewards, dones, infos = venv.step(actions)`."""
    for target, value, _ in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[_, _, _, _] as names),
                ast.Call(func=ast.Attribute(value=env, attr=attr)),
            ) if attr in STEPS and is_vector(source, env):
                yield names
            case _:
                pass


def _flow(scope: Scope, names: list[ast.expr]) -> _Flow | None:
    """Return which names hold what `step` gave; None if no observation is kept for the next."""
    new, _, done, infos = map(written, names)
    pairs = list(_pairs(scope))
    before = _kept_for_next(scope, new, pairs) if new else set[str]()
    if not before:
        return None
    first = {done, infos} - {"", "_"}
    ends = first | {name for name, value in pairs if first & names_in(value)} - {""}
    before |= {name for name, value in pairs if _plain(value) in before} - {""}
    return _Flow(before, _only(new, pairs, before), ends)


def _kept_for_next(scope: Scope, new: str, pairs: list[tuple[str, ast.expr]]) -> set[str]:
    """Return the names that are read before they are set to what `step` returned."""
    read: dict[str, int] = {}
    for node in walk(scope):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            read[written(node)] = min(node.lineno, read.get(written(node), node.lineno))
    copies = {new}
    for _ in range(2):
        copies |= {name for name, value in pairs if _plain(value, rows=False) in copies} - {""}
    return {
        name
        for name, value in pairs
        if name in copies - {new, ""}
        and _plain(value, rows=False) in copies
        and read.get(name, value.lineno) < value.lineno
    }


def _only(new: str, pairs: list[tuple[str, ast.expr]], before: set[str]) -> set[str]:
    """Return the names that hold what `step` returned, or a row of it, and are set to no other."""
    found = {new}
    for _ in range(3):
        found |= {name for name, value in pairs if _plain(value) in found} - before - {""}
    return {name for name in found if all(_plain(v) in found for n, v in pairs if n == name)}


def _plain(value: ast.expr, rows: bool = True) -> str:
    """Return the name of what is copied, converted, or taken a row of; empty for others."""
    while True:
        value = unconverted(value)
        match value:
            case ast.Subscript(value=inner):
                if not rows:
                    return ""
                value = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=[]) if attr in COPIES:
                value = inner
            case ast.Call(func=ast.Attribute(attr=attr), args=[inner]) if attr in COPIES:
                value = inner
            case _:
                return written(value)


def _pairs(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    """Yield names and what they are set to, also in `for a, b in zip(x, y)`; not by `step`."""
    for target, value, _ in assignments(scope):
        if not isinstance(target, ast.Tuple):
            yield written(target), value
    for node in walk(scope):
        match node:
            case ast.For(target=target, iter=ast.Call(func=ast.Name(id=name), args=args)):
                if name == "enumerate" and isinstance(target, ast.Tuple) and len(args) == 1:
                    target, args = target.elts[-1], _zipped(args[0])
                elif name != "zip":
                    continue
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from zip(map(written, parts), args, strict=False)
            case _:
                pass


def _zipped(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id="zip"), args=args):
            return args
        case _:
            return [node]


def _kept(source: Source, scope: Scope, flow: _Flow) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Yield the code that stores a state and its successor, and all that it stores.

    It is a statement that only calls something, or that sets the same row of several arrays, or
    several that each append to a list.
    """
    rows: dict[str, list[tuple[ast.expr, ast.expr]]] = {}
    appended: dict[ast.AST, list[ast.Call]] = {}
    for node in walk(scope):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[_]) as call):
                appended.setdefault(source.parents[node], []).append(call)
            case _:
                pass
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            parts = list(_parts(node.value))
            shows = has_word(last_word(node.value.func), *SHOWS)
            if not shows and _has_both(parts, flow):
                yield node.value, parts
    for target, value, _ in assignments(scope):
        if isinstance(target, ast.Subscript) and written(target):
            rows.setdefault(ast.unparse(target.slice), []).append((target, value))
    for stored in rows.values():
        values = [value for _, value in stored]
        after = [target for target, value in stored if _plain(value) in flow.after]
        if after and _has_both(values, flow):
            yield after[0], values
    for calls in appended.values():
        values = [call.args[0] for call in calls]
        of_after = [call for call in calls if _plain(call.args[0]) in flow.after]
        if of_after and _has_both(values, flow):
            yield of_after[0], values


def _has_both(parts: list[ast.expr], flow: _Flow) -> bool:
    names = {_plain(one) for one in parts}
    return bool(names & flow.before) and bool(names & flow.after)


def _parts(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call is given, also in tuples, dicts and calls in it: `add(Step(obs, new))`."""
    for one in arguments(call):
        match one:
            case ast.Call() if _plain(one) == "":
                yield from _parts(one)
            case ast.Tuple(elts=inner) | ast.List(elts=inner) | ast.Dict(values=inner):
                yield from inner
            case _:
                yield one


def _bootstraps(scope: Scope, flow: _Flow) -> Iterator[Hit]:
    """Find `gamma * critic(new_obs)` of a program that tells time limits apart."""
    for node in walk(scope):
        parts = factors(node) if isinstance(node, ast.BinOp) else []
        if not any(is_discount(name) for one in parts for name in names_in(one)):
            continue
        for one in parts:
            call = unconverted(one)
            if isinstance(call, ast.Call) and any(_plain(x) in flow.after for x in call.args):
                yield Hit(
                    call, "the value at a time limit is that of the observation after a reset"
                )


def _tests(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """Yield what it depends on whether code runs; a loop over all rows is no test."""
    for one in conditions(source, node):
        match one:
            case ast.Call(func=ast.Name(id="zip" | "enumerate" | "range")):
                pass
            case _:
                yield one


def conditions(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """Yield what code depends on: the tests and loops around it, and tests that skip it."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        parent = source.parents[node]
        match parent:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield test
            case ast.For(iter=over, body=body):
                yield over
                yield from (one.test for one in body if _skips(one))
            case _:
                pass
        node = parent


def _skips(statement: ast.stmt) -> TypeGuard[ast.If]:
    """Return whether a statement goes on with the next turn of a loop, where a test holds."""
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Continue)
