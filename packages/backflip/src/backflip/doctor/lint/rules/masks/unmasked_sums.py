"""L40: sums of advantages that go on behind the end of an episode."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.masks.ignored_ends import may_tell_ends
from backflip.doctor.lint.source import (
    Source,
    assignments,
    factors,
    is_discount,
    last_word,
    names_in,
    walk,
    written,
)


def _unmasked_sums(source: Source) -> Iterator[Hit]:
    """Find `delta = r + γ v(s') (1 - done) - v(s); A = delta + γ λ A` in a loop."""
    for loop in source.nodes:
        if not isinstance(loop, ast.For):
            continue
        of_ends, own = _of_ends(loop), names_in(loop.target)
        for node in walk(loop):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    pass
                case _:
                    continue
            rest, kept = _split(value, name)
            if not rest or kept is None or _is_of_a_step(kept, own) or of_ends & names_in(kept):
                continue
            masked = of_ends & {one for term in rest for one in names_in(term)}
            if masked and _is_set_once(loop, name) and not _tests_ends(loop, of_ends):
                seen = f"`{name}` goes on behind an end: only `{sorted(masked)[0]}` is masked"
                yield Hit(node, seen)


def _of_ends(loop: ast.For) -> set[str]:
    """Return the names that tell ends in a loop, and those that the loop computes from them."""
    found = {name for name in names_in(loop) if may_tell_ends(name)}
    for _ in range(3):  # `mask = 1 - done`, `after = mask * value`, `delta = reward + after`
        for target, value, _ in assignments(loop):
            if isinstance(target, ast.Name) and target.id not in names_in(value):
                found |= {target.id} if found & names_in(value) else set()
    return found


def _split(value: ast.expr, name: str) -> tuple[list[ast.expr], ast.expr | None]:
    """Return the other terms of a sum, and the one that discounts `name`; None without one."""
    terms = _terms(value)
    kept = [one for one in terms if name in names_in(one)]
    if len(kept) != 1 or not _discounts_itself(kept[0], name):
        return [], None
    return [one for one in terms if one is not kept[0]], kept[0]


def _terms(value: ast.expr) -> list[ast.expr]:
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return [*_terms(left), right]
        case _:
            return [value]


def _discounts_itself(term: ast.expr, name: str) -> bool:
    """Return whether a term is `γ * λ * A`, and not `γ * (A - v)`."""
    parts = factors(term)
    return any(written(one) == name for one in parts) and any(
        is_discount(last_word(one)) for one in parts
    )


def _is_of_a_step(term: ast.expr, own: set[str]) -> bool:
    """Return whether a factor differs from step to step: it may be 0 behind an end."""
    return bool(own & names_in(term)) or any(
        isinstance(one, ast.Subscript | ast.Call) for one in ast.walk(term)
    )


def _is_set_once(loop: ast.For, name: str) -> bool:
    """Return whether nothing else in a loop sets a name, such as `A = 0` and `A *= mask`."""
    count = sum(written(target) == name for target, _, _ in assignments(loop))
    changed = (one for one in walk(loop) if isinstance(one, ast.AugAssign))
    return count == 1 and not any(written(one.target) == name for one in changed)


def _tests_ends(loop: ast.For, of_ends: set[str]) -> bool:
    """Return whether a loop has a branch for ends."""
    tests = (node.test for node in ast.walk(loop) if isinstance(node, ast.If | ast.IfExp))
    return any(of_ends & names_in(test) for test in tests)


RULES = (
    Rule(
        "L40",
        "a sum of advantages goes on behind an end",
        "The mask of the temporal difference does not reach the sum: what the next episode is "
        "worth is credited to the actions of the one before.",
        "Mask both: `delta = r + gamma * v_next * (1 - done) - v` and "
        "`advantage = delta + gamma * lam * (1 - done) * advantage`.",
        "Schulman et al. 2016, arXiv:1506.02438, equation 16, where sums end with the episode",
        _unmasked_sums,
    ),
)
