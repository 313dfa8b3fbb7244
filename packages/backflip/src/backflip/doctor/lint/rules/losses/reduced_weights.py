"""L58: weights of transitions that multiply the mean of all losses."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    factors,
    has_word,
    last_word,
    walk,
    written,
)

LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
CLASSES = ("mseloss", "smoothl1loss", "huberloss", "l1loss")


def _reduced_weights(source: Source) -> Iterator[Hit]:
    """Find `(weights * F.smooth_l1_loss(q, target)).mean()`."""
    objects = {
        written(target)
        for body in source.bodies
        for target, value, _ in assignments(body)
        if isinstance(value, ast.Call) and last_word(value.func) in CLASSES and _is_mean(value)
    } - {""}
    for scope in source.scopes:
        reduced = {
            written(target)
            for target, value, _ in assignments(scope)
            if _is_reduced(value, objects)
        }
        for node in walk(scope):
            parts = factors(node) if isinstance(node, ast.BinOp) else []
            weights = [one for one in parts if has_word(last_word(one), "weight", "is_w")]
            if not weights or "coef" in last_word(weights[0]) or not _is_averaged(source, node):
                continue
            if any(_is_reduced(one, objects) or written(one) in reduced for one in parts):
                name = written(weights[0])
                yield Hit(node, f"`{name}` multiplies one number, the mean of all losses")


def _is_reduced(node: ast.expr, objects: set[str]) -> bool:
    """Return whether code is a loss that is averaged over the batch."""
    if not isinstance(node, ast.Call):
        return False
    named = last_word(node.func) in LOSSES and _is_mean(node)
    return named or written(node.func) in objects


def _is_mean(call: ast.Call) -> bool:
    return argument(call, "reduction") is None and argument(call, "reduce") is None


def _is_averaged(source: Source, node: ast.AST) -> bool:
    """Return whether the mean of code is taken: the author takes it for one number each."""
    parent = source.parents[node]
    match parent:
        case ast.Attribute(attr="mean" | "sum"):
            return True
        case ast.Call(func=func):
            return last_word(func) in ("mean", "sum")
        case _:
            return False


RULES = (
    Rule(
        "L58",
        "weights multiply the mean of the losses",
        "Each transition then counts the same, and the correction for how often it was drawn is "
        "lost.",
        "Keep the losses apart: "
        '`(weights * F.smooth_l1_loss(q, target, reduction="none")).mean()`.',
        "Schaul et al. 2016, arXiv:1511.05952, algorithm 1",
        _reduced_weights,
    ),
)
