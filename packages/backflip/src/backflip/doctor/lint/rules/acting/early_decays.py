"""Exploration that ends before learning begins, in loops of the program: a part of L13."""

import ast
from collections.abc import Iterator
from math import prod

from backflip.doctor.lint.questions.records import number_at
from backflip.doctor.lint.questions.values import given_for, settings
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    arguments,
    assignments,
    factors,
    has_word,
    last_word,
    number,
    parameters,
    unconverted,
    walk,
    written,
)

Counter = tuple[ast.AST, str]  # a name that counts steps, and where it belongs

LEARNS = ("backward", "learn", "train", "optimi", "fit", "apply_gradients", "minimize", "update")
SHOWS = ("bar", "progress", "log", "stat", "metric", "tqdm")
BOUNDS = ("min", "max", "clip", "minimum", "maximum")
SCHEDULES = ("schedule", "linear", "decay", "anneal", "eps", "explor")
SHORTEST = 10  # steps of a decay


def early_decays(source: Source) -> Iterator[Hit]:
    """Find an ε that ends its linear decay in fewer steps than pass before learning."""
    starts = dict(_starts(source))
    for length, counter in _decays(source) if starts else ():
        first, steps = starts.get(counter), _value(source, length)
        if first is not None and steps is not None and SHORTEST <= steps < first:
            seen = f"ε ends its decay after {steps:g} steps, and learning starts at {first:g}"
            yield Hit(_setting(source, length), seen)


def _counter(source: Source, node: ast.expr) -> Counter:
    name = written(node)
    return source.home(node, name), name


def _starts(source: Source) -> Iterator[tuple[Counter, float]]:
    """Yield the counters of loops that learn once a counter is large enough, and that number."""
    for node in source.nodes:
        if not isinstance(node, ast.If):
            continue
        skips = isinstance(node.body[-1], ast.Continue) and len(node.body) == 1
        if not skips and not any(map(_learns, ast.walk(node))):
            continue
        is_all = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        tests = node.test.values if isinstance(node.test, ast.BoolOp) and is_all else [node.test]
        for test in tests:
            for step, bound in _later(test, skips):
                first = number_at(source, bound)
                if written(step) and not isinstance(step, ast.Subscript) and first is not None:
                    yield _counter(source, step), first


def _later(test: ast.expr, skips: bool) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield counter and number of `step > number`; of a test that skips, of `step < number`."""
    match test:
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
            yield (right, left) if skips else (left, right)
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
            yield (left, right) if skips else (right, left)
        case _:
            pass


def _learns(node: ast.AST) -> bool:
    """Return whether code calls something that learns; a bar of progress is updated, too."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=attr)):
            return attr.lstrip("_").startswith(LEARNS) and not has_word(last_word(owner), *SHOWS)
        case ast.Call(func=ast.Name(id=name)):
            return name.startswith(LEARNS)
        case _:
            return False


def _decays(source: Source) -> Iterator[tuple[ast.expr, Counter]]:
    """Yield the lengths of linear decays of ε, each with the counter that it depends on."""
    for scope in source.scopes:
        is_own = isinstance(scope, FUNCTIONS) and has_word(scope.name, "eps", "explor")
        values = [
            value
            for target, value, _ in assignments(scope)
            if has_word(last_word(target), "eps", "explor")
        ]
        returned = [one.value for one in walk(scope) if isinstance(one, ast.Return) and one.value]
        for value in [*values, *(returned if is_own else [])]:
            for length, step in _formula(source, value):
                yield from ((length, one) for one in _counters(source, step))


def _counters(source: Source, step: ast.expr) -> Iterator[Counter]:
    """Yield the counter that a formula reads; of a parameter, those that calls give."""
    scope = source.function_of(step)
    own = {one.arg for one in parameters(scope)} if isinstance(scope, FUNCTIONS) else set[str]()
    yield _counter(source, step)
    if isinstance(scope, FUNCTIONS) and written(step) in own:
        for one in given_for(source, scope, written(step)):
            yield _counter(source, unconverted(one))


def _formula(source: Source, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield length and counter of `schedule(1.0, 0.1, n, t)`, `max(0.1, 1 - t / n)`, `interp`."""
    calls = [one for one in ast.walk(value) if isinstance(one, ast.Call)]
    if any(has_word(last_word(one.func), "exp") for one in calls if one is not value):
        return
    for call in calls:
        match last_word(call.func), arguments(call):
            case "interp", [step, ast.List(elts=[_, length]) | ast.Tuple(elts=[_, length]), _]:
                yield length, unconverted(step)
            case word, given if len(given) == 4 and has_word(word, *SCHEDULES):
                yield from _scheduled(source, given)
            case _:
                pass
    if any(last_word(one.func) in BOUNDS for one in calls):
        divided = [
            one
            for one in ast.walk(value)
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)
        ]
        if len(divided) == 1:
            steps = [divided[0].left, *factors(divided[0].left)]
            yield from ((divided[0].right, one) for one in map(unconverted, steps) if written(one))


def _scheduled(source: Source, given: list[ast.expr]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield length and counter among first ε, last ε, length and counter, in any order."""
    known = [(one, _value(source, one)) for one in given]
    shares = [value for _, value in known if value is not None and 0 <= value <= 1]
    lengths = [one for one, value in known if value is not None and value > 1]
    steps = [one for one, value in known if value is None]
    if len(shares) == 2 and len(lengths) == len(steps) == 1:
        yield lengths[0], unconverted(steps[0])


def _value(source: Source, node: ast.expr) -> float | None:
    """Return the number that an expression is, also a product of settings."""
    plain = unconverted(node)
    parts = [number_at(source, unconverted(one)) for one in factors(plain) or [plain]]
    known = [one for one in parts if one is not None]
    return prod(known) if len(known) == len(parts) else None


def _setting(source: Source, length: ast.expr) -> ast.AST:
    """Return where the smallest option in a length is set; the length if it has none."""
    plain = unconverted(length)
    names = [one.attr for one in factors(plain) or [plain] if isinstance(one, ast.Attribute)]
    found = [one for name in names if (one := settings(source).get(name)) is not None]
    return min(found, key=lambda one: number(one) or 0, default=length)
