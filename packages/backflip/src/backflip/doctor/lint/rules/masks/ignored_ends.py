"""L25: values of states behind the end of an episode."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Scope,
    Source,
    assignments,
    discounts,
    has_word,
    is_of_next,
    is_product,
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


def _all_ignored(source: Source) -> Iterator[Hit]:
    yield from _ignored_ends(source)
    yield from _unstored_ends(source)


def _ignored_ends(source: Source) -> Iterator[Hit]:
    """Find functions that get ends, read none of them, and discount the value of a next state."""
    for scope in source.scopes:
        if not isinstance(scope, FUNCTIONS):
            continue
        read = _read(scope)
        ignored = sorted(_given_ends(scope) - read)
        if not ignored or any(map(may_tell_ends, read)):
            continue
        for statement in _bootstraps(scope):
            yield Hit(statement, f"`{ignored[0]}` is never read, so values go on behind an end")
            break


def _unstored_ends(source: Source) -> Iterator[Hit]:
    """Find `memory.append((state, action, reward, next_state))` where an end is known."""
    if "step" not in source.calls_of or not _learns_values(source):
        return
    for scope in source.scopes:
        ends = {written(target) for target in _stepped(scope)} - {""}
        for node in walk(scope) if ends else ():
            if not _is_without_end(node) or source.is_inside(node, (ast.If,)):
                continue
            if ignored := ends & _only_tested(scope):
                seen = f"`{sorted(ignored)[0]}` is not stored, so values go on behind an end"
                yield Hit(node, seen)


def _learns_values(source: Source) -> bool:
    """Return whether a statement discounts something."""
    statements = (ast.Assign, ast.AugAssign)
    return any(isinstance(node, statements) and discounts(node) for node in source.nodes)


def _stepped(scope: Scope) -> Iterator[ast.expr]:
    """Yield the names of ends in `next_state, reward, done, info = env.step(action)`."""
    for target, value, _ in assignments(scope):
        match target, value:
            case ast.Tuple(elts=parts), ast.Call(func=ast.Attribute(attr="step")):
                yield from (one for one in parts if has_word(written(one), *ENDS))
            case _:
                pass


def _only_tested(scope: Scope) -> set[str]:
    """Return the names that are read in tests alone; none if a next state may be None."""
    tested, read = set[str](), set[str]()
    for node in walk(scope):
        match node:
            case ast.If(test=test) | ast.While(test=test):
                tested |= names_in(test)
            case ast.Assign(targets=[target], value=value) if is_of_next(target):
                nothing = (isinstance(one, ast.Constant) for one in ast.walk(value))
                if any(nothing):
                    return set()
            case _:
                pass
    tests = [node.test for node in walk(scope) if isinstance(node, ast.If | ast.While)]
    inside = {one for test in tests for one in ast.walk(test)}
    for node in walk(scope):
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if is_read and node not in inside:
            read.add(written(node))
    return tested - read


def _is_without_end(node: ast.AST) -> bool:
    """Return whether a call stores state, action, reward and next state, and nothing else."""
    match node:
        case ast.Call(func=ast.Attribute(), args=[ast.Tuple(elts=parts) | ast.List(elts=parts)]):
            pass
        case ast.Call(func=ast.Attribute(), args=parts, keywords=[]):
            pass
        case _:
            return False
    if len(parts) != FEWEST - 1:
        return False
    _, action, reward, after = parts
    names = written(action).lower(), written(reward).lower()
    is_transition = has_word(names[0], "act") or names[0] == "a"
    return (
        is_transition and (names[1] in ("r", "rew") or "reward" in names[1]) and is_of_next(after)
    )


def may_tell_ends(name: str) -> bool:
    """Return whether a name may tell that an episode goes on, or ends."""
    return has_word(name, *OTHERS) or bool({"end", "ends"} & set(name.lower().split("_")))


def _read(function: Function) -> set[str]:
    """Return the names and keys that a function reads, also in functions inside it.

    In `done = torch.tensor(done)` nothing is read that counts.
    """
    found: set[str] = set()
    converted = {
        node
        for target, value, _ in assignments(function)
        for node in ast.walk(value)
        if isinstance(target, ast.Name) and isinstance(node, ast.Name) and node.id == target.id
    }
    for node in ast.walk(function):
        match node:
            case ast.Name(ctx=ast.Load()) if node in converted:
                pass
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
    """Return whether code is `γ * v(next_obs)`, `γ * values[t + 1]` or `r + 0.99 * next_value`."""
    match node:
        case ast.BinOp(op=ast.Mult()) if discounts(node):
            return _has_next(node, of_next)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if discounts(node):
            products = (one for one in (left, right) if is_product(one))
            return any(_has_next(one, of_next) and not discounts(one) for one in products)
        case _:
            return False


def _has_next(node: ast.expr, of_next: set[str]) -> bool:
    """Return whether a product has something of the next state."""
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
        _all_ignored,
    ),
)
