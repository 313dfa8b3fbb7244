"""L48: returns that stay in the order of their computation, the last one first."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, discounts, last_word, names_in, walk

ARRAYS = ("tensor", "floattensor", "array", "asarray", "as_tensor", "stack", "cat")
TURNS = ("reverse", "reversed", "flip", "flipud", "fliplr", "insert", "appendleft")


def _reversed_returns(source: Source) -> Iterator[Hit]:
    """Find `for r in rewards[::-1]: R = r + γ R; out.append(R)` and `return out`."""
    turns = [node for node in source.nodes if _turns(node)]
    for scope in source.scopes:
        for loop in walk(scope):
            if not (isinstance(loop, ast.For) and any(map(_turns, ast.walk(loop.iter)))):
                continue
            own = set(ast.walk(loop.iter))
            if not own.issuperset(turns):  # another place may turn the list round
                continue
            for name in _sums_kept(loop) & _returned(scope):
                yield Hit(loop, f"`{name}` is returned with the last step first")


def _turns(node: ast.AST) -> bool:
    """Return whether code turns the order of something round, or puts what is new in front."""
    match node:
        case ast.Call(func=func) if last_word(func) in TURNS:
            return True
        case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
            return True
        case ast.Call(func=ast.Name(id="range"), args=[_, _, ast.UnaryOp(op=ast.USub())]):
            return True
        case _:
            return False


def _sums_kept(loop: ast.For) -> set[str]:
    """Return the lists to which a loop appends a discounted sum, `R = r + γ R`."""
    sums, kept = set[str](), set[tuple[str, str]]()
    for node in walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if discounts(value):
                sums |= {name} & names_in(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[one]):
                kept |= {(name, part) for part in names_in(one)}
            case _:
                pass
    return {name for name, part in kept if part in sums}


def _returned(scope: ast.AST) -> set[str]:
    """Return the names that a function returns as they are, or makes an array of."""
    found = set[str]()
    for node in walk(scope):
        match node:
            case ast.Return(value=ast.Name(id=name) | ast.Call(args=[ast.Name(id=name), *_])):
                found.add(name)
            case ast.Assign(value=ast.Call(func=func, args=[ast.Name(id=name), *_])) if (
                last_word(func) in ARRAYS
            ):
                found.add(name)
            case _:
                pass
    return found


RULES = (
    Rule(
        "L48",
        "returns are in the order of their computation",
        "The return of the last step comes first, and each action is credited with what another "
        "one earned.",
        "Turn the list round before it is used: `returns.reverse()`, or `returns.insert(0, R)`.",
        "RLMutation, arXiv:2301.05651, operator NR, is the reverse mistake",
        _reversed_returns,
    ),
)
