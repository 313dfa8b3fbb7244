"""Log-probabilities of a policy's loss that have no gradient: a part of L05."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.losses.loss_signs import Term, losses, terms
from backflip.doctor.lint.source import (
    Scope,
    Source,
    has_word,
    last_word,
    names_in,
    origins,
)

LIKELIHOODS = ("log_prob", "logprob", "logp", "lp_a", "log_pi")
OLDER = ("old", "behav", "ref", "prev", "target")  # of another policy, which has no gradient
# Words of names of temperatures, whose loss has the log-probability detached.
TEMPERATURES = {"alpha", "logalpha", "temp", "temperature", "lagrange", "ent", "entropy", "eta"}


def cut_log_probs(source: Source) -> Iterator[Hit]:
    """Find `loss = -(dist.log_prob(a).detach() * advantage).mean()`, also by way of names."""
    for scope in source.scopes:
        for _, value, statement in losses(source, scope):
            if source.without_gradients(statement) or _has_ratio(value):
                continue
            for term in _all_terms(scope, value):
                names = {name for one in term.factors for name in names_in(one)}
                if len(term.factors) < 2 or any(map(is_temperature, names)):
                    continue
                cut = (_cut(source, scope, one) for one in term.factors)
                if (found := next(filter(None, cut), None)) is not None:
                    seen = "the log-probability is detached, so the policy has no gradient"
                    yield Hit(found, seen)


def is_temperature(name: str) -> bool:
    """Return whether a name is that of a temperature, or of its logarithm."""
    return any(set(part.lower().split("_")) & TEMPERATURES for part in name.split("."))


def _all_terms(scope: Scope, value: ast.expr) -> Iterator[Term]:
    """Yield the terms of a loss, also those of the names that it adds: `loss = actor + critic`."""
    for term in terms(value):
        match term.factors:
            case [ast.Name() as name]:
                *_, made = origins(scope, name)
                yield from terms(made) if made is not name else ()
            case _:
                yield term


def _has_ratio(value: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Call) and last_word(one.func) == "exp" for one in ast.walk(value)
    )


def _cut(source: Source, scope: Scope, factor: ast.expr) -> ast.expr | None:
    """Return where a log-probability loses its gradient; None if it keeps it."""
    for one in origins(scope, factor):
        for node in ast.walk(one):
            if not isinstance(node, ast.Call):
                continue
            is_off = last_word(node.func) == "log_prob" and source.without_gradients(node)
            if is_off or (last_word(node.func) == "detach" and _holds_log_prob(node)):
                return node
    return None


def _holds_log_prob(node: ast.AST) -> bool:
    """Return whether code calls `log_prob`, or has a name such as `logps` and no older one."""
    words = {last_word(one) for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)}
    named = [word for word in words if has_word(word, *LIKELIHOODS)]
    return bool(named) and not any(has_word(word, *OLDER) for word in named)
