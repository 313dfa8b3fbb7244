"""L44: ratios of a policy with itself."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Scope, Source, assignments, last_word, walk, written

CLIPS = ("clamp", "clip", "clip_by_value")


def _own_ratios(source: Source) -> Iterator[Hit]:
    """Find `exp(dist.log_prob(a) - dist.log_prob(a).detach())` where it is clipped."""
    for scope in source.scopes:
        if not any(
            isinstance(node, ast.Call) and last_word(node.func) in CLIPS for node in walk(scope)
        ):
            continue
        for node in walk(scope):
            match node:
                case ast.Call(func=func, args=[ast.BinOp(left=new, op=ast.Sub(), right=old)]) if (
                    last_word(func) == "exp" and _are_one(scope, new, old)
                ):
                    yield Hit(node, "both log probabilities are of one policy, so the ratio is 1")
                case _:
                    pass


def _are_one(scope: Scope, new: ast.expr, old: ast.expr) -> bool:
    """Return whether two names are set once, to the same log probability."""
    one, other = _set_to(scope, new), _set_to(scope, old)
    one = new if one is None and isinstance(new, ast.Call) else one
    if one is None or other is None or "log_prob" not in ast.unparse(one):
        return False
    return _whole(scope, one) == _whole(scope, other)


def _whole(scope: Scope, node: ast.expr) -> str:
    """Return `policy(obs).log_prob(a)` of `dist.log_prob(a)` where `dist = policy(obs)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name() as of)):
            made = _set_to(scope, of)
            text = ast.unparse(node)
            return text if made is None else text.replace(of.id, ast.unparse(made), 1)
        case _:
            return ast.unparse(node)


def _set_to(scope: Scope, node: ast.expr) -> ast.expr | None:
    """Return what a name is set to, without `detach`; None if it is set more than once."""
    found = [value for target, value, _ in assignments(scope) if written(target) == written(node)]
    if not isinstance(node, ast.Name) or len(found) != 1:
        return None
    value = found[0]
    while isinstance(value, ast.Call) and last_word(value.func) in ("detach", "stop_gradient"):
        match value:
            case ast.Call(func=ast.Attribute(value=inner), args=[]) | ast.Call(args=[inner, *_]):
                value = inner
            case _:
                return None
    return value


RULES = (
    Rule(
        "L44",
        "the ratio is of the policy with itself",
        "It is 1 in every update, so nothing is ever clipped: many epochs move the policy as far "
        "as they can.",
        "Keep the log probabilities of when the actions were taken, before the first epoch.",
        "Schulman et al. 2017, arXiv:1707.06347, equation 6",
        _own_ratios,
    ),
)
