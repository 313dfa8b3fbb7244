"""L47: losses that no gradient leaves."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.loss_signs import losses, terms
from backflip.doctor.lint.rules.mixed_states import ACTORS, CRITICS
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    has_word,
    last_word,
    written,
)


def _severed_losses(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        cut = _detached_actions(scope)
        for name, value, statement in losses(source, scope):
            if not has_word(name, "actor", "policy", "pi"):
                continue
            found = [one for term in terms(value) for one in term.factors]
            for factor in found if len(found) == 1 else ():
                if _judges(factor, cut):
                    yield Hit(statement, "the action is detached, so the policy has no gradient")


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
