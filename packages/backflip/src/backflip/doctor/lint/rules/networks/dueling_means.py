"""L52: dueling networks whose mean is taken over the batch."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.loss_signs import terms
from backflip.doctor.lint.source import Source, last_word, walk


def _dueling_means(source: Source) -> Iterator[Hit]:
    """Find `value + advantage - advantage.mean()`."""
    for scope in source.scopes:
        for node in walk(scope):
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)):
                continue
            if isinstance(source.parents[node], ast.BinOp):
                continue  # the whole sum is looked at
            plain = [node.left, node.right]
            means = [one for side in plain for one in ast.walk(side) if _averaged(one)]
            added = [ast.unparse(factor) for one in terms(node) for factor in one.factors]
            for mean in means:
                inner = _averaged(mean)
                if inner and len(added) == 3 and added.count(inner) == 2 and "adv" in inner.lower():
                    yield Hit(mean, f"the mean of `{inner}` is over all states of the batch")


def _averaged(node: ast.AST) -> str:
    """Return x of `x.mean()` and of `torch.mean(x)`, without an axis; empty for other code."""
    match node:
        case ast.Call(func=func, args=[inner], keywords=[]) if last_word(func) in (
            "mean",
            "reduce_mean",
        ) and not isinstance(inner, ast.Constant):
            return ast.unparse(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="mean"), args=[], keywords=[]):
            return ast.unparse(inner)
        case _:
            return ""


RULES = (
    Rule(
        "L52",
        "the mean of a dueling network is over the batch",
        "The value of an action then depends on which other states are in the batch, and another "
        "one is used to act than the one that was learned.",
        "Average over the actions: `value + advantage - advantage.mean(1, keepdim=True)`.",
        "Wang et al. 2016, arXiv:1511.06581, equation 9",
        _dueling_means,
    ),
)
