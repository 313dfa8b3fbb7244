"""L38: importance ratios that are upside down."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, has_word, last_word, names_in

OLD = ("old", "behav", "prev")
LOG = ("log", "lp")
NEGATIVE = ("neg", "nll")


def _inverted_ratios(source: Source) -> Iterator[Hit]:
    """Find `ratio = exp(old_log_probs - log_probs)`."""
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            if has_word(last_word(target), "ratio") and _is_inverted(value):
                yield Hit(value, f"`{ast.unparse(value)}` is large where the policy turned away")


def _is_inverted(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=func, args=[ast.BinOp(left=old, op=ast.Sub(), right=new)]) if (
            last_word(func) == "exp"
        ):
            return _is_log(old) and _is_log(new) and _is_old(old) and not _is_old(new)
        case ast.Call(
            func=ast.Attribute(attr="exp", value=ast.BinOp(left=old, op=ast.Sub(), right=new))
        ):
            return _is_log(old) and _is_log(new) and _is_old(old) and not _is_old(new)
        case _:
            return False


def _is_log(node: ast.expr) -> bool:
    """Return whether code names a log-probability, and not its negative."""
    names = names_in(node)
    return any(has_word(x, *LOG) for x in names) and not any(has_word(x, *NEGATIVE) for x in names)


def _is_old(node: ast.expr) -> bool:
    return any(has_word(name, *OLD) for name in names_in(node))


RULES = (
    Rule(
        "L38",
        "the ratio is upside down",
        "The ratio of the new probability to the old one weighs actions. Its inverse grows where "
        "the policy moves away from an action, and the clipping holds the wrong side.",
        "`ratio = exp(log_prob - old_log_prob)`.",
        "Schulman et al. 2017, arXiv:1707.06347, equation 6",
        _inverted_ratios,
    ),
)
