"""Where probabilities of two policies are compared: exp(log π - log π_old)."""

import ast

from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    last_word,
    number,
    walk,
    written,
)

CLIPS = ("clamp", "clip", "clip_by_value", "clamp_")


def compares_policies(source: Source) -> bool:
    """Return whether a program has a ratio of probabilities, by its name or as it is clipped."""
    return any(map(_is_named, source.nodes)) or any(
        _is_clipped_ratio(source.function_of(call), call)
        for name in CLIPS
        for call in source.calls_of.get(name, ())
    )


def _is_named(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and "ratio" in last_word(node.targets[0])
        and any(map(_is_exp, walk(node)))
    )


def _is_clipped_ratio(scope: Scope, call: ast.Call) -> bool:
    """Return whether a call is `clip(ratio, 1 - eps, 1 + eps)` of exp(a difference)."""
    limits = arguments(call)[-2:]
    if len(limits) < 2 or not all(map(_is_near_one, limits)):
        return False
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return any(_is_ratio(scope, one) for one in (*owner, *call.args[:1]))


def _is_near_one(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if number(node) is None:
            return 1 in (number(left), number(right))
        case _:
            value = number(node)
            return value is not None and 0.5 <= value <= 1.5


def _is_ratio(scope: Scope, node: ast.expr) -> bool:
    """Return whether a value is exp(a - b) or a / b, also by names."""
    return any(
        (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div))
        or (_is_exp(one) and any(_is_difference(scope, part) for part in _inside(one)))
        for one in (node, *_set_to(scope, node))
    )


def _set_to(scope: Scope, node: ast.expr) -> list[ast.expr]:
    name = written(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    return [value for target, value, _ in assignments(scope) if name and written(target) == name]


def _is_exp(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_word(node.func) == "exp"


def _inside(exp: ast.expr) -> list[ast.expr]:
    """Return what the exponential is of: the argument of a function, or what has the method."""
    match exp:
        case ast.Call(args=[inner, *_]):
            return [inner]
        case ast.Call(func=ast.Attribute(value=inner)):
            return [inner]
        case _:
            return []


def _is_difference(scope: Scope, node: ast.expr) -> bool:
    """Return whether a value is a - b, or its sum or reshaped, also by a name."""
    match node:
        case ast.BinOp(op=ast.Sub()):
            return True
        case ast.Call(func=ast.Attribute(value=inner)):
            return _is_difference(scope, inner)
        case _:
            return any(
                isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub)
                for one in _set_to(scope, node)
            )
