"""Shares of random actions that are large, and that nothing changes: a part of L12."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.questions.values import defaults, given_for, known_numbers, value_of
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Scope,
    Source,
    assignments,
    has_word,
    last_word,
    parameters,
    rest_of_block,
    unconverted,
    written,
)

# Draws that can make an action random.
DRAWS = (
    *("random", "rand", "randn", "randint", "randrange", "integers", "choice", "choices"),
    *("uniform", "normal", "sample", "multinomial", "categorical", "gumbel", "standard_normal"),
)
UNIFORM = ("random", "rand", "uniform", "random_sample")
LARGE = 0.5  # share of random actions; with more of them, few episodes show what was learned


class Choice(NamedTuple):
    """A choice by chance between two ways to act.

    Attributes:
        node: the comparison of a random number with ε.
        share: what the random number is compared with, ε or what gives it.
        below: the code for a random number below ε.
        above: the code for one above it.
    """

    node: ast.AST
    share: ast.expr
    below: list[ast.AST]
    above: list[ast.AST]

    @property
    def name(self) -> str:
        """The name of ε; empty for a formula."""
        return written(self.share)

    @property
    def is_greedy_below(self) -> bool:
        """Whether ε is the share of greedy actions: only the code above it draws."""
        return any(map(draws_at_random, self.above)) and not any(map(draws_at_random, self.below))


def still_epsilons(source: Source) -> Iterator[Hit]:
    """Find an ε that is one number in the whole program, with which most actions are random."""
    if not steps_an_environment(source):
        return
    for choice in choices(source):
        value = _only_value(source, choice.name.rpartition(".")[2])
        if value is None or not 0 < value <= 1:
            continue
        share = 1.0 - value if choice.is_greedy_below else value
        if share >= LARGE:
            side = "above" if choice.is_greedy_below else "below"
            seen = f"`{choice.name}` stays {value:g}, and actions are random {side} it"
            yield Hit(choice.node, seen)


def greedy_shares(source: Source) -> set[str]:
    """Return the last words of names of ε that are shares of greedy actions."""
    return {one.name.rpartition(".")[2] for one in choices(source) if one.is_greedy_below}


def choices(source: Source) -> Iterator[Choice]:
    """Yield the branches of a program whose test compares a random number with ε."""
    return (one for one in compared_shares(source) if is_epsilon(one.name))


def compared_shares(source: Source) -> Iterator[Choice]:
    """Yield the branches of a program whose test compares a random number with anything."""
    for node in source.nodes:
        if not isinstance(node, ast.If | ast.IfExp):
            continue
        share, is_less = _compared(node.test)
        if share is None:
            continue
        holds, fails = _branches(source, node)
        below, above = (holds, fails) if is_less else (fails, holds)
        yield Choice(node.test, share, below, above)


def _branches(source: Source, node: ast.If | ast.IfExp) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return the code that runs if a test holds, and if it fails: without `else`, what follows."""
    if isinstance(node, ast.IfExp):
        return [node.body], [node.orelse]
    return [*node.body], [*(node.orelse or rest_of_block(source.parents[node], node))]


def draws_at_random(node: ast.AST) -> bool:
    """Return whether code draws a random number, or calls what is named so."""
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(
        last_word(one.func) in DRAWS or has_word(last_word(one.func), "random", "explor")
        for one in calls
    )


def steps_an_environment(source: Source) -> bool:
    """Return whether a program has the loop in which an agent meets its environment."""
    return any(steps_environment(source, one) for one in source.calls_of.get("step", ()))


def _compared(test: ast.expr) -> tuple[ast.expr | None, bool]:
    """Return what a random number is compared with, and whether the number must be smaller."""
    match test:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
            small, large = left, right
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
            small, large = right, left
        case _:
            return None, False
    if is_uniform(small):
        return large, True
    return (small, False) if is_uniform(large) else (None, False)


def is_uniform(node: ast.expr) -> bool:
    """Return whether a value is a random number between 0 and 1, or a row of those."""
    plain = unconverted(node)
    plain = plain.value if isinstance(plain, ast.Subscript) else plain
    return isinstance(plain, ast.Call) and last_word(plain.func) in UNIFORM


def _only_value(source: Source, last: str) -> float | None:
    """Return the number that all names with a last word have; None if it is not known.

    What a function sets that nothing calls does not count.
    """
    idle = {id(scope) for scope in source.scopes if is_never_called(source, scope)}
    stores = [
        node
        for node in source.nodes
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and last_word(node) == last.lower()
        and id(source.function_of(node)) not in idle
    ]
    set_here = [
        value_of(value, known_numbers(source, scope))
        for scope in source.scopes
        if id(scope) not in idle
        for target, value, statement in assignments(scope)
        if last_word(target) == last.lower() and not isinstance(statement, ast.AugAssign)
    ]
    only = len(stores) == len(set_here) == 1
    return set_here[0] if only and _is_passed_on(source, last) else None


def is_never_called(source: Source, scope: Scope) -> bool:
    """Return whether a method of a class that is used here has a name that nothing mentions."""
    inside = source.class_of(scope) if isinstance(scope, FUNCTIONS) else None
    if inside is None or isinstance(scope, ast.Module) or scope.name.startswith("__"):
        return False
    if scope.decorator_list or inside.name.lower() not in source.calls_of:
        return False
    mentioned = any(
        isinstance(node, ast.Attribute | ast.Name) and last_word(node) == scope.name.lower()
        for node in source.nodes
    )
    return not mentioned and f'"{scope.name}"' not in source.text


def _is_passed_on(source: Source, last: str) -> bool:
    """Return whether every function with such a parameter is called here, with that name."""
    return all(
        _keeps_name(source, function, one.arg)
        for function in source.scopes
        if isinstance(function, FUNCTIONS)
        for one in parameters(function)
        if one.arg == last
    )


def _keeps_name(source: Source, function: Function, name: str) -> bool:
    given = list(given_for(source, function, name))
    kept = name in defaults(function) or bool(given)
    return kept and all(last_word(value) == name.lower() for value in given)


def is_epsilon(name: str) -> bool:
    """Return whether a name is that of ε, the share of random actions."""
    last = name.rpartition(".")[2].lower()
    return last in ("eps", "epsilon") or (has_word(last, "epsilon") and not has_word(last, "adam"))
