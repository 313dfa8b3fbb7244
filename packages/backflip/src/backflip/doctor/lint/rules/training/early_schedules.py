"""Schedules of learning rates that end long before the run does: a part of L07."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.records import number_at
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Source,
    argument,
    assignments,
    last_word,
    written,
)

# Schedulers, each with the name and the place of the number of steps that it takes.
LENGTHS = {
    "CosineAnnealingLR": ("T_max", 1),
    "LinearLR": ("total_iters", 3),
    "PolynomialLR": ("total_iters", 1),
    "OneCycleLR": ("total_steps", 2),
}


def early_schedules(source: Source) -> Iterator[Hit]:
    """Find `schedule.step()` in a loop inside of the loop that the schedule is as long as."""
    for name, length in _schedules(source).items():
        for call in source.calls_of.get("step", ()):
            if last_word(getattr(call.func, "value", call.func)) != name:
                continue
            if any(_is_nested(source, one, length) for one in _chains(source, call)):
                seen = f"the schedule has {ast.unparse(length)} steps, and is stepped more often"
                yield Hit(call, f"{seen}, in an inner loop")


def _schedules(source: Source) -> dict[str, ast.expr]:
    """Return the lengths of schedules by the last word of their names."""
    found: dict[str, ast.expr] = {}
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            if not isinstance(value, ast.Call):
                continue
            kind = source.dotted(value.func).rpartition(".")[2]
            length = argument(value, *LENGTHS[kind]) if kind in LENGTHS else None
            if kind == "LambdaLR":
                length = _divisor(argument(value, "lr_lambda", 1))
            if length is not None and last_word(target):
                found[last_word(target)] = length
    return found


def _divisor(node: ast.expr | None) -> ast.expr | None:
    """Return N of `lambda step: 1 - step / N`."""
    match node:
        case ast.Lambda(
            args=ast.arguments(args=[step]),
            body=ast.BinOp(left=_, op=ast.Sub(), right=ast.BinOp(left=over, op=ast.Div(), right=n)),
        ) if written(over) == step.arg:
            return n
        case _:
            return None


def _chains(source: Source, node: ast.AST, depth: int = 2) -> Iterator[list[ast.AST]]:
    """Yield the loops and branches around a call, the innermost first, by each way to it."""
    around: list[ast.AST] = []
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        node = source.parents[node]
        if isinstance(node, (*LOOPS, ast.If)):
            around.append(node)
    calls = source.calls_of.get(node.name.lower(), []) if isinstance(node, FUNCTIONS) else []
    if not calls or not depth:
        yield around
    for call in calls if depth else ():
        for rest in _chains(source, call, depth - 1):
            yield around + rest


def _is_nested(source: Source, around: list[ast.AST], length: ast.expr) -> bool:
    """Return whether loops are inside of the loop with a length, and no branch leaves turns out."""
    for inner, loop in enumerate(around):
        if isinstance(loop, ast.If):
            return False
        if isinstance(loop, ast.For) and _has_length(source, loop.iter, length):
            return inner > 0
    return False


def _has_length(source: Source, iterated: ast.expr, length: ast.expr) -> bool:
    """Return whether code is `range(n)`, or `range(1, n + 1)`, with this n."""
    match iterated:
        case ast.Call(args=[first, *_]) if last_word(iterated.func) in ("trange", "range", "tqdm"):
            if last_word(iterated.func) == "tqdm":
                return _has_length(source, first, length)
            if len(iterated.args) == 2 and number_at(source, first) == 1:
                match iterated.args[1]:
                    case ast.BinOp(left=first, op=ast.Add(), right=ast.Constant(value=1)):
                        pass
                    case _:
                        return False
            if ast.unparse(first) == ast.unparse(length):
                return True
            known = number_at(source, first)
            return known is not None and known == number_at(source, length)
        case _:
            return False
