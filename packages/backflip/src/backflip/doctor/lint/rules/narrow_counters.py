"""Counters of steps that are too narrow for a long run: a part of L19."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    number,
)
from backflip.doctor.lint.values import parsed

COUNTED = ("step", "frame", "sample", "transition", "interaction", "count", "total", "tick")
NARROW = ("int32", "int16", "int8")
MADE = ("array", "asarray", "tensor", "zeros", "zeros_like", "ones")
LARGEST = 2**31 - 1


def narrow_counters(source: Source) -> Iterator[Hit]:
    """Find `frames = np.int32(0)`, where frames grow: after 2^31 - 1 the count is negative.

    Arrays of JAX have 32 bits unless it is told otherwise, so there a run must have more steps.
    """
    grown = {last_word(one.target) for one in source.nodes if isinstance(one, ast.AugAssign)}
    grown |= _grown_by_names(source)
    is_long = _has_large_number(source)
    for body in source.bodies:
        for target, value, _ in assignments(body):
            name = last_word(target)
            kind = _narrow_number(source, value)
            is_used = kind and name in grown and has_word(name, *COUNTED)
            if is_used and (is_long or not kind.startswith("jax")):
                seen = f"`{name}` counts in {kind.rpartition('.')[2]}"
                yield Hit(value, f"{seen}, and is negative beyond its largest number")


def _grown_by_names(source: Source) -> set[str]:
    """Return the names in `x = x + n`."""
    found: set[str] = set()
    for body in source.bodies:
        for target, value, _ in assignments(body):
            match value:
                case ast.BinOp(left=left, op=ast.Add()) if last_word(left) == last_word(target):
                    found.add(last_word(target))
                case _:
                    pass
    return found


def _narrow_number(source: Source, value: ast.expr) -> str:
    """Return the type of one narrow number, also of the default of a field; empty for others."""
    match value:
        case ast.Call(keywords=[ast.keyword(arg="default_factory", value=ast.Lambda(body=made))]):
            return _narrow_number(source, made)
        case ast.Call(func=func, args=[]) if last_word(func) == "field":
            default = argument(value, "default")
            return "" if default is None else _narrow_number(source, default)
        case ast.Call(func=func, args=[ast.Constant()]) if last_word(func) in NARROW:
            return source.dotted(func)
        case ast.Call(func=func, args=[first, *_]) if last_word(func) in MADE:
            kind = argument(value, "dtype", 1)
            one = number(first) is not None or (isinstance(first, ast.Tuple) and not first.elts)
            named = "" if kind is None else source.dotted(kind)
            if isinstance(kind, ast.Constant):
                named = str(kind.value)
            return named if one and named.rpartition(".")[2] in NARROW else ""
        case _:
            return ""


def _has_large_number(source: Source) -> bool:
    """Return whether a program has a number of steps beyond the largest of 32 bits."""
    values = [value for body in source.bodies for _, value, _ in assignments(body)]
    values += [value for _, value in parsed(source)]
    return any((number(one) or 0) > LARGEST for one in values)
