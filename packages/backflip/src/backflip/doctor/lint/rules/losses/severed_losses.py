"""L47: losses that no gradient leaves."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.loss_signs import losses, terms
from backflip.doctor.lint.rules.losses.mixed_states import ACTORS, CRITICS
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    has_word,
    last_word,
    names_in,
    written,
)

REGRESSIONS = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
TARGETS = ("target", "targets", "returns", "expected")


def _severed_losses(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        cut = _detached_actions(scope)
        for name, value, statement in losses(source, scope):
            if _predicts_nothing(source, scope, value):
                yield Hit(statement, "the prediction is detached, so it has no gradient")
                continue
            if not has_word(name, "actor", "policy", "pi"):
                continue
            found = [one for term in terms(value) for one in term.factors]
            for factor in found if len(found) == 1 else ():
                if _judges(factor, cut):
                    yield Hit(statement, "the action is detached, so the policy has no gradient")


def _predicts_nothing(source: Source, scope: Scope, value: ast.expr) -> bool:
    """Return whether no side of a regression has a gradient: `mse_loss(q.detach(), target)`."""
    for node in ast.walk(value):
        match node:
            case ast.Call(func=func, args=[one, other, *_]) if last_word(func) in REGRESSIONS:
                cut = [_is_cut(scope, side) for side in (one, other)]
                fixed = [_is_fixed(source, scope, side) for side in (one, other)]
                return (cut[0] and fixed[1]) or (cut[1] and fixed[0])
            case _:
                pass
    return False


def _is_cut(scope: Scope, node: ast.expr, depth: int = 4) -> bool:
    """Return whether a value is detached where it is written, or where its name got it."""
    match node:
        case ast.Call(func=ast.Attribute(attr="detach")):
            return not _is_target(node)
        case ast.Call(func=ast.Attribute(value=inner)):
            return depth > 0 and _is_cut(scope, inner, depth - 1)
        case ast.Name(id=name):
            given = [value for target, value, _ in assignments(scope) if written(target) == name]
            one = given[0] if len(given) == 1 and depth > 0 else None
            return isinstance(one, ast.Call) and _is_cut(scope, one, depth - 1)
        case _:
            return False


def _is_fixed(source: Source, scope: Scope, node: ast.expr) -> bool:
    """Return whether a value is a target: by its name, or since it was made without gradients."""
    if _is_target(node):
        return True
    places = [at for target, _, at in assignments(scope) if written(target) == written(node) != ""]
    return bool(places) and all(map(source.without_gradients, places))


def _is_target(node: ast.expr) -> bool:
    return any(has_word(name.split(".")[-1], *TARGETS) for name in names_in(node))


def _detached_actions(scope: Scope) -> set[str]:
    """Return the names of actions of the policy without a gradient: `a = actor(obs).detach()`."""
    return {written(target) for target, value, _ in assignments(scope) if _is_detached(value)} - {
        ""
    }


def _is_detached(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=acts), attr="detach")):
            return has_word(last_word(acts), *ACTORS)
        case _:
            return False


def _judges(node: ast.expr, cut: set[str]) -> bool:
    """Return whether a critic judges an action without a gradient."""
    match node:
        case ast.Call(func=func, args=[_, action]) if has_word(last_word(func), *CRITICS):
            return written(action) in cut or _is_detached(action)
        case _:
            return False


RULES = (
    Rule(
        "L47",
        "the policy has no gradient",
        "Its loss is a number that its weights cannot change: the policy stays as it began.",
        "Leave the action attached: `actor_loss = -critic(obs, actor(obs)).mean()`.",
        "Lillicrap et al. 2015, arXiv:1509.02971, equation 6",
        _severed_losses,
    ),
)
