"""L53: noise that is never negative."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, last_word, walk, written

UNIFORM = ("rand_like", "rand", "random", "random_sample")
CLIPS = ("clamp", "clip")


def _one_sided_noise(source: Source) -> Iterator[Hit]:
    """Find `(torch.rand_like(a) * sigma).clamp(-c, c)`, and `noise = rand(n)` that is clipped so.

    The bounds say that the noise should have both signs.
    """
    for scope in source.scopes:
        kept: dict[str, list[ast.expr]] = {}
        for target, value, _ in assignments(scope):
            kept.setdefault(written(target), []).append(value)
        for node in walk(scope):
            clipped = _clipped_to_both_sides(node)
            if clipped is None:
                continue
            known = kept.get(written(clipped) or "-", [clipped])
            if len(known) == 1 and _is_uniform(known[0]):
                yield Hit(node, "the noise is uniform in [0, 1), so it is never negative")


def _clipped_to_both_sides(node: ast.AST) -> ast.expr | None:
    """Return x of `x.clamp(-c, c)` and `np.clip(x, -c, c)`; None for other code."""
    if not (isinstance(node, ast.Call) and last_word(node.func) in CLIPS):
        return None
    match node:
        case ast.Call(args=[inner, ast.UnaryOp(op=ast.USub(), operand=low), high]):
            pass
        case ast.Call(
            func=ast.Attribute(value=inner), args=[ast.UnaryOp(op=ast.USub(), operand=low), high]
        ):
            pass
        case _:
            return None
    return inner if ast.unparse(low) == ast.unparse(high) else None


def _is_uniform(value: ast.expr) -> bool:
    """Return whether a value is a uniform number, or that times a scale."""
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _is_uniform(left) or _is_uniform(right)
        case ast.Call(func=func):
            return last_word(func) in UNIFORM
        case _:
            return False


RULES = (
    Rule(
        "L53",
        "noise that is never negative",
        "It is uniform from 0 to 1: actions are pushed to one side, where they were to be smoothed "
        "or explored to both.",
        "Draw from a normal distribution: `torch.randn_like(action) * sigma`.",
        "Fujimoto et al. 2018, arXiv:1802.09477, algorithm 1",
        _one_sided_noise,
    ),
)
