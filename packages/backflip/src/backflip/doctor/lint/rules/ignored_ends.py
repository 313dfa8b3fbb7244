"""L25: values of states behind the end of an episode."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    assignments,
    discounts,
    has_word,
    is_of_next,
    names_in,
    number,
    parameters,
    walk,
    written,
)

ENDS = ("done", "terminal", "terminat")  # in names of ends
# In names and keys of what else may say that an episode goes on.
OTHERS = ("done", "term", "trunc", "mask", "alive", "contin", "absorb", "discounts", "non", "ended")
SHORT = "d"  # name of an end, where a transition is taken apart
FEWEST = 5  # parts of a transition with an end


def _ignored_ends(source: Source) -> Iterator[Hit]:
    """Find functions that get ends, read none of them, and discount the value of a next state."""
    for scope in source.scopes:
        if not isinstance(scope, FUNCTIONS):
            continue
        read = _read(scope)
        ignored = sorted(_given_ends(scope) - read)
        if not ignored or any(map(_may_say_so, read)):
            continue
        for statement in _bootstraps(scope):
            yield Hit(statement, f"`{ignored[0]}` is never read, so values go on behind an end")
            break


def _may_say_so(name: str) -> bool:
    """Return whether a name may say that an episode goes on, or ends."""
    return has_word(name, *OTHERS) or bool({"end", "ends"} & set(name.lower().split("_")))


def _read(function: Function) -> set[str]:
    """Return the names and keys that a function reads, also in functions inside it."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                found.add(name)
            case ast.Subscript(slice=ast.Constant(value=str() as key)):
                found.add(key)
            case _:
                pass
    return found


def _given_ends(function: Function) -> set[str]:
    """Return the parameters that are ends, and those in `s, a, r, s2, d = batch`."""
    found = {one.arg for one in parameters(function) if has_word(one.arg, *ENDS)}
    for target, _, _ in assignments(function):
        found |= {name for name in map(written, _transition(target)) if _is_end(name)}
    return found


def _transition(target: ast.expr) -> list[ast.expr]:
    """Return the parts of a transition that is taken apart; empty for other targets."""
    match target:
        case ast.Tuple(elts=parts) if len(parts) >= FEWEST and any(map(is_of_next, parts)):
            return parts
        case _:
            return []


def _is_end(name: str) -> bool:
    return name == SHORT or has_word(name, *ENDS)


def _bootstraps(function: Function) -> Iterator[ast.stmt]:
    """Yield the statements that multiply γ with something of the next state."""
    pairs = [(written(target), value) for target, value, _ in assignments(function)]
    of_next = {name for name, value in pairs if name and is_of_next(value)}
    for node in walk(function):
        is_simple = isinstance(node, ast.Assign | ast.AugAssign | ast.Return)
        if is_simple and any(_discounts_next(one, of_next) for one in ast.walk(node)):
            yield node


def _discounts_next(node: ast.AST, of_next: set[str]) -> bool:
    """Return whether code is `γ * v(next_obs)`, `γ * next_value` or `γ * values[t + 1]`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and discounts(node)):
        return False
    places = (one.slice for one in ast.walk(node) if isinstance(one, ast.Subscript))
    return any(map(_is_later, places)) or is_of_next(node) or bool(of_next & names_in(node))


def _is_later(place: ast.expr) -> bool:
    match place:
        case ast.BinOp(left=ast.Name(), op=ast.Add(), right=more):
            return number(more) == 1
        case _:
            return False


RULES = (
    Rule(
        "L25",
        "ends of episodes are ignored",
        "The value of the state after the last one is that of a reset, or of no state at all: "
        "values grow towards the largest sum that never ends, and a fall costs nothing.",
        "Multiply what comes after the end by 0: `r + gamma * v(next_obs) * (1 - terminated)`, and "
        "the sum of advantages too.",
        "DRLinter, arXiv:2101.00135, `Missing terminal state`; Sutton and Barto 2018, section 3.4",
        _ignored_ends,
    ),
)
