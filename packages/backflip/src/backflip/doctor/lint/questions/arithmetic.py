"""The values of a program's arithmetic at a time, computed without running the program."""

import ast
import math
from collections.abc import Callable, Mapping

from backflip.doctor.lint.questions.records import number_at
from backflip.doctor.lint.questions.values import defaults, given_for
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    computed,
    last_word,
    parameters,
    walk,
    written,
)

DEEPEST = 6  # names and functions that are followed


def _clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def _largest(*values: float) -> float:
    return max(values)


def _smallest(*values: float) -> float:
    return min(values)


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent)


FUNCTIONS_OF_NUMBERS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "cos": math.cos,
    "tanh": math.tanh,
    "max": _largest,
    "maximum": _largest,
    "min": _smallest,
    "minimum": _smallest,
    "pow": _power,
    "power": _power,
    "abs": math.fabs,
    "clip": _clip,
    "float": float,
    "int": math.floor,
    "floor": math.floor,
}


def value_with(
    source: Source, node: ast.expr, known: Mapping[str, float], depth: int = DEEPEST
) -> float | None:
    """Return the number that an expression gives; None if that is not known, or no number.

    Args:
        source: the program.
        node: an expression of it.
        known: the numbers of some names, such as the time.
        depth: how many names and own functions are followed.
    """
    try:
        return _value(source, node, known, depth)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _value(source: Source, node: ast.expr, known: Mapping[str, float], depth: int) -> float | None:
    match node:
        case ast.Name() | ast.Attribute():
            if written(node) in known:
                return known[written(node)]
            return number_at(source, node)
        case ast.Constant(value=int() | float() as plain):
            return float(plain)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = _value(source, inner, known, depth)
            return None if value is None else -value
        case ast.BinOp(left=left, op=op, right=right):
            return computed(
                _value(source, left, known, depth), op, _value(source, right, known, depth)
            )
        case ast.IfExp(test=test, body=body, orelse=orelse):
            holds = _holds(source, test, known, depth)
            return (
                None if holds is None else _value(source, body if holds else orelse, known, depth)
            )
        case ast.Call():
            return _called(source, node, known, depth)
        case _:
            return None


def _holds(source: Source, test: ast.expr, known: Mapping[str, float], depth: int) -> bool | None:
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _value(source, left, known, depth), _value(source, right, known, depth)
            if one is None or other is None:
                return None
            match op:
                case ast.Lt():
                    return one < other
                case ast.LtE():
                    return one <= other
                case ast.Gt():
                    return one > other
                case ast.GtE():
                    return one >= other
                case _:
                    return None
        case _:
            return None


def _called(source: Source, call: ast.Call, known: Mapping[str, float], depth: int) -> float | None:
    """Return what a function of numbers gives, or a function of the program with one `return`."""
    function = _own(source, call)
    if function is None:
        compute = FUNCTIONS_OF_NUMBERS.get(last_word(call.func))
        given = [_value(source, one, known, depth) for one in call.args]
        numbers = [one for one in given if one is not None]
        if compute is None or not numbers or len(numbers) < len(given) or call.keywords:
            return None
        return float(compute(*numbers))
    own: dict[str, float] = {}
    names = [one.arg for one in parameters(function) if one.arg not in ("self", "cls")]
    for place, name in enumerate(names):
        given = argument(call, name, place) or defaults(function).get(name)
        value = None if given is None else _value(source, given, known, depth)
        if value is not None:
            own[name] = value
    return None if depth == 0 else _returned(source, function, own, depth - 1)


def _own(source: Source, call: ast.Call) -> Function | None:
    name = written(call.func).removeprefix("self.")
    found = [one for one in source.scopes if isinstance(one, FUNCTIONS) and one.name == name]
    return found[0] if len(found) == 1 else None


def _returned(
    source: Source, function: Function, known: dict[str, float], depth: int
) -> float | None:
    """Return what a function of plain statements returns."""
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found = _value(source, value, known, depth)
                known = {k: v for k, v in known.items() if k != name}
                known |= {} if found is None else {name: found}
            case ast.Return(value=ast.expr() as value):
                return _value(source, value, known, depth)
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.If(test=test, body=[ast.Return(value=ast.expr() as value)], orelse=[]):
                holds = _holds(source, test, known, depth)
                if holds is None:
                    return None
                if holds:
                    return _value(source, value, known, depth)
            case _:
                return None
    return None


def clocks(source: Source, function: ast.AST, depth: int = DEEPEST) -> set[str]:
    """Return the names of a function that count up: of `for t in range(n)`, or by `t += 1`.

    Also the parameters for which each call gives such a name.
    """
    found = set[str]()
    if isinstance(function, FUNCTIONS):
        found |= _given_clocks(source, function, depth)
    for node in walk(function):
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=func)) if last_word(func) in (
                *("range", "trange", "count"),
            ):
                found.add(name)
            case ast.AugAssign(target=target, op=ast.Add(), value=ast.Constant(value=1)):
                found.add(written(target))
            case _:
                pass
    return found - {""}


def _given_clocks(source: Source, function: Function, depth: int) -> set[str]:
    found: set[str] = set()
    for name in (one.arg for one in parameters(function)) if depth else ():
        given = list(given_for(source, function, name))
        callers = [clocks(source, source.function_of(one), depth - 1) for one in given]
        pairs = zip(given, callers, strict=True)
        if given and all(written(one) in names - {""} for one, names in pairs):
            found.add(name)
    return found
