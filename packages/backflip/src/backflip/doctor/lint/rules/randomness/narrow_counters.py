"""Counters of steps that are too narrow for a long run: a part of L19."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from backflip.doctor.lint.questions.arithmetic import value_with
from backflip.doctor.lint.questions.values import defaults, parsed
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    names_in,
    number,
)

COUNTED = ("step", "frame", "sample", "transition", "interaction", "count", "total", "tick")
NARROW = ("int32", "int16", "int8")
MADE = ("array", "asarray", "tensor", "zeros", "zeros_like", "ones")
LARGEST = 2**31 - 1


class Set(NamedTuple):
    """A value that a name, a field or an entry of a dict gets."""

    name: str
    value: ast.expr


def narrow_counters(source: Source) -> Iterator[Hit]:
    """Find `frames = np.int32(0)`, where frames grow: after 2^31 - 1 the count is negative.

    Arrays of JAX have 32 bits unless it is told otherwise, so there a run must have more steps; so
    it must for counts that are fields.
    """
    grown = {_read(one.target) for one in source.nodes if isinstance(one, ast.AugAssign)}
    fields = list(_fields(source))
    assigned = [
        Set(last_word(target), value)
        for body in source.bodies
        for target, value, _ in assignments(body)
    ]
    grown |= {one.name for one in (*assigned, *fields) if _adds_to(one)}
    changes = [one.value for one in (*assigned, *fields)]
    is_long = _has_large_number(source) or any(_is_long_loop(source, one) for one in changes)
    reported = set[str]()
    for place, (name, value) in enumerate((*assigned, *fields)):
        kind = _narrow_number(source, value)
        is_used = kind and name in grown and has_word(name, *COUNTED)
        is_wide_enough = kind.startswith("jax") or place >= len(assigned)
        is_known = isinstance(value, ast.BinOp) and name in reported
        if is_used and (is_long or not is_wide_enough) and not is_known:
            reported.add(name)
            seen = f"`{name}` counts in {kind.rpartition('.')[2]}"
            yield Hit(value, f"{seen}, and is negative beyond its largest number")


def _is_long_loop(source: Source, value: ast.expr) -> bool:
    """Return whether `frames + n` is computed by a function so often that frames pass 2^31."""
    match value:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if has_word(
            f"{_read(left)} {_read(right)}", *COUNTED
        ):
            added = max(_computed(source, left), _computed(source, right))
            name = getattr(source.function_of(value), "name", "")
            return added > 1 and added * _turns(source, name) > LARGEST
        case _:
            return False


def _turns(source: Source, name: str) -> float:
    """Return how often a loop of the program, or `scan`, runs a function; 0 if not known."""
    found = [0.0]
    for node in source.nodes:
        match node:
            case ast.For(iter=ast.Call(args=[*_, length]) as over) if last_word(over.func) in (
                "range",
                "trange",
            ) and name in names_in(node):
                found.append(_computed(source, length))
            case ast.Call(func=func, args=[ast.Name(id=one), *_]) if (
                one == name and last_word(func) == "scan"
            ):
                length = argument(node, "length", 3)
                found += [] if length is None else [_computed(source, length)]
            case _:
                pass
    return max(found)


def _computed(source: Source, value: ast.expr) -> float:
    """Return the number that a value is, also by constants and in another type; 0 for others."""
    if isinstance(value, ast.Call) and last_word(value.func) in (*NARROW, *MADE) and value.args:
        value = value.args[0]
    return value_with(source, value, {}) or 0.0


def _fields(source: Source) -> Iterator[Set]:
    """Yield what fields of objects, and entries of dicts, get: `State(step=0)`, `{"step": 0}`."""
    known = _fields_by_class(source)
    for node in source.nodes:
        match node:
            case ast.Call(func=func, args=args, keywords=named):
                places = known.get(last_word(func), []) if args else []
                yield from map(Set, places, args)
                yield from (Set(one.arg.lower(), one.value) for one in named if one.arg)
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                yield from (Set(_text(key), value) for key, value in pairs)
            case ast.Assign(targets=[ast.Subscript(slice=key)], value=value):
                yield Set(_text(key), value)
            case _:
                pass


def _fields_by_class(source: Source) -> dict[str, list[str]]:
    """Return the fields that classes of the program have, in order."""
    return {
        body.name.lower(): [
            last_word(one.target) for one in body.body if isinstance(one, ast.AnnAssign)
        ]
        for body in source.bodies
        if isinstance(body, ast.ClassDef)
    }


def _text(key: ast.expr | None) -> str:
    """Return a key of a dict that is a text, in lower case; empty for others."""
    is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
    return str(key.value).lower() if isinstance(key, ast.Constant) and is_text else ""


def _adds_to(new: Set) -> bool:
    """Return whether what a name gets is the same and more: `x = x + n`, `step=state.step + n`."""
    match new.value:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return new.name in (_read(left), _read(right)) and new.name != ""
        case _:
            return False


def _read(node: ast.expr) -> str:
    """Return the last part of a name, or the key in `state["step"]`."""
    if isinstance(node, ast.Subscript) and (key := _text(node.slice)):
        return key
    return last_word(node)


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
        case ast.BinOp(
            left=ast.Name() | ast.Attribute(), op=ast.Add(), right=ast.Call(func=func)
        ) if last_word(func) in NARROW and source.dotted(func).startswith("jax"):
            return source.dotted(func)  # of no array with more bits
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
    values += [value for name, value in _given(source) if has_word(name, *COUNTED)]
    products = [
        value
        for body in source.bodies
        for target, value, _ in assignments(body)
        if has_word(last_word(target), *COUNTED) and _has_product(value)
    ]
    return any((number(one) or 0) > LARGEST for one in values) or any(
        _computed(source, one) > LARGEST for one in products
    )


def _has_product(value: ast.expr) -> bool:
    return any(isinstance(one, ast.Mult | ast.Pow) for one in ast.walk(value))


def _given(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """Yield what parameters are by default or in calls, and what names are compared with."""
    for scope in source.scopes:
        if isinstance(scope, FUNCTIONS):
            yield from defaults(scope).items()
    for node in source.nodes:
        match node:
            case ast.keyword(arg=str() as name, value=value):
                yield name, value
            case ast.Compare(left=left, comparators=[right]):
                yield _read(left), right
            case _:
                pass
