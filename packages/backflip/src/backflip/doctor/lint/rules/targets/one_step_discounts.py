"""L65: n-step returns after which the value is discounted once."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    factors,
    last_word,
    names_in,
    walk,
    written,
)

NAMED = re.compile(r"n_?steps?|multi_?step", re.IGNORECASE)
REPLAYS = ("replay", "buffer", "memory", "storage")


def _one_step_discounts(source: Source) -> Iterator[Hit]:
    """Find `ret + gamma * target(next_obs).max(1)` where a replay stores sums of n rewards."""
    if not (NAMED.search(source.text) and any(one in source.text.lower() for one in REPLAYS)):
        return
    folds = [scope for scope in source.scopes if _folds(scope)]
    if not folds or any(_is_power(source, node) for node in source.nodes):
        return
    for scope in source.scopes:
        if scope in folds or isinstance(scope, ast.Module):
            continue
        for target, value, statement in assignments(scope):
            is_target = "target" in last_word(target) or last_word(target) in ("y", "backup")
            if is_target and _adds_one_step(value):
                yield Hit(statement, "the value of n steps later is multiplied by gamma once")


def _folds(scope: Scope) -> bool:
    """Return whether a function sums rewards with growing powers of gamma."""
    for node in walk(scope):
        match node:
            case ast.AugAssign(target=ast.Name() as power, op=ast.Mult(), value=value):
                if last_word(value) == "gamma" and last_word(power) != "gamma":
                    return True
            case ast.BinOp(left=base, op=ast.Pow()) if _is_gamma(base):
                return True
            case _:
                pass
    return False


def _counters(scope: ast.AST) -> set[str]:
    """Return the names that loops and comprehensions of a scope count with."""
    loops = (one for one in walk(scope) if isinstance(one, ast.For | ast.comprehension))
    return {name for one in loops for name in names_in(one.target)}


def _is_power(source: Source, node: ast.AST) -> bool:
    """Return whether code is `gamma ** n`, of an n that no loop counts."""
    match node:
        case ast.BinOp(left=base, op=ast.Pow(), right=n) if _is_gamma(base):
            return written(n) not in _counters(source.function_of(node))
        case ast.Call(func=func, args=[base, _]) if last_word(func) in ("pow", "power"):
            return _is_gamma(base)
        case _:
            return False


def _is_gamma(node: ast.expr) -> bool:
    return last_word(node) == "gamma"


def _adds_one_step(value: ast.expr) -> bool:
    """Return whether a value is `ret + gamma * ... * x`."""
    match value:
        case ast.BinOp(op=ast.Add(), right=product):
            parts = factors(product)
            return len(parts) > 1 and any(map(_is_gamma, parts))
        case _:
            return False


RULES = (
    Rule(
        "L65",
        "the value after n steps is discounted once",
        "The stored reward is a sum over n steps, and the value is that of n steps later: it "
        "counts 1 / gamma^(n-1) times too much, and values grow.",
        "Multiply by `gamma ** n`, or by the power that is stored with a shorter sum.",
        "Hessel et al. 2018, arXiv:1710.02298, equation 2",
        _one_step_discounts,
    ),
)
