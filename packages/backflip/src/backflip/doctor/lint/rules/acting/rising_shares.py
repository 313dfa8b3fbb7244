"""Shares of random actions that rise with time, whatever formula gives them: a part of L12."""

import ast
from collections.abc import Iterator
from itertools import takewhile

from backflip.doctor.lint.questions.arithmetic import clocks, value_with
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.acting.still_epsilons import (
    Choice,
    compared_shares,
    draws_at_random,
)
from backflip.doctor.lint.source import FUNCTIONS, Source, assignments, names_in, walk, written

TIMES = (0.0, 1e3, 1e4, 1e5, 1e6, 1e7)
FEWEST = 3  # values that tell whether a share rises
RISE = 0.1  # of a share; less may be rounding, or a share that hardly moves


def rising_shares(source: Source) -> Iterator[Hit]:
    """Compute the share at several times: 1 - exp(-t / T) rises, exp(-t / T) falls."""
    for choice in compared_shares(source):
        random_below = any(map(draws_at_random, choice.below))
        if random_below == any(map(draws_at_random, choice.above)):
            continue
        for formula in _formulas(source, choice):
            values = _over_time(source, formula)
            if len(values) < FEWEST or not 0 <= values[0] <= 1:
                continue
            shares = values if random_below else [1 - one for one in values]
            if shares == sorted(shares) and shares[-1] - shares[0] > RISE:
                seen = f"the share of random actions goes from {shares[0]:g} to {shares[-1]:g}"
                yield Hit(_place(source, formula), seen)


def _formulas(source: Source, choice: Choice) -> list[ast.expr]:
    """Return what is compared; of a name, what its function sets it to, if it is set once."""
    name = written(choice.share)
    if not name:
        return [choice.share]
    scope = source.function_of(choice.node)
    values = [value for target, value, _ in assignments(scope) if written(target) == name]
    return values if len(values) == 1 and name not in names_in(values[0]) else []


def _over_time(source: Source, formula: ast.expr) -> list[float]:
    """Return the values of a formula at several times, up to the first that is not known.

    `exp(t / T)` is too large for a number at the end.
    """
    times = clocks(source, source.function_of(formula)) & names_in(formula)
    if len(times) != 1:
        return []
    (time,) = times
    values = (value_with(source, formula, {time: at}) for at in TIMES)
    return [one for one in takewhile(lambda one: one is not None, values) if one is not None]


def _place(source: Source, formula: ast.expr) -> ast.AST:
    """Return the `return` of the program's function that computes a share, or the formula."""
    name = written(formula.func) if isinstance(formula, ast.Call) else ""
    own = [one for one in source.scopes if isinstance(one, FUNCTIONS) and one.name == name]
    returned = [node for one in own for node in walk(one) if isinstance(node, ast.Return)]
    return returned[-1] if returned else formula
