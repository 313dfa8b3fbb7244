"""L45: returns from advantages that were normalised."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, has_word, last_word, names_in, written

RETURNS = ("return", "ret", "target")
VALUES = ("value", "val", "baseline")


def _normalised_returns(source: Source) -> Iterator[Hit]:
    """Find `adv = (adv - adv.mean()) / adv.std(); returns = adv + values`."""
    for scope in source.scopes:
        normalised: dict[str, int] = {}
        for target, value, statement in assignments(scope):
            name = written(target)
            if name and _is_normalised(value, name):
                normalised[name] = statement.lineno
            elif name in normalised:
                del normalised[name]
            if not has_word(last_word(target), *RETURNS):
                continue
            match value:
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    parts = written(left), written(right)
                case _:
                    continue
            if any(has_word(last_word(one), *VALUES) for one in (left, right)) and any(
                normalised.get(one, statement.lineno) < statement.lineno for one in parts
            ):
                yield Hit(statement, "the advantages are normalised before values are added")


def _is_normalised(value: ast.expr, name: str) -> bool:
    """Return whether a value is `(name - name.mean()) / name.std()`."""
    match value:
        case ast.BinOp(left=ast.BinOp(left=own, op=ast.Sub()), op=ast.Div(), right=spread):
            words = {last_word(one.func) for one in ast.walk(spread) if isinstance(one, ast.Call)}
            return written(own) == name and name in names_in(value) and "std" in words
        case _:
            return False


RULES = (
    Rule(
        "L45",
        "returns are made from normalised advantages",
        "Their scale and mean are those of a batch, not of the rewards: the critic learns a number "
        "that is no return.",
        "Add the values first: `returns = advantages + values`, then normalise.",
        "Schulman et al. 2016, arXiv:1506.02438, section 6.1: the critic is fitted to returns",
        _normalised_returns,
    ),
)
