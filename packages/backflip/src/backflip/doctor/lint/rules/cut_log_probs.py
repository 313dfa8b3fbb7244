"""Log-probabilities of a policy's loss that have no gradient: a part of L05."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.loss_signs import losses, terms
from backflip.doctor.lint.source import (
    Scope,
    Source,
    has_word,
    last_word,
    names_in,
    origins,
)

TEMPERATURES = ("alpha", "temp", "eta", "lagrange")  # their loss has the log-probability detached


def cut_log_probs(source: Source) -> Iterator[Hit]:
    """Find `loss = -(dist.log_prob(a).detach() * advantage).mean()`, also by way of names."""
    for scope in source.scopes:
        for _, value, statement in losses(source, scope):
            if source.without_gradients(statement) or _has_ratio(value):
                continue
            for term in terms(value):
                names = {name for one in term.factors for name in names_in(one)}
                if len(term.factors) < 2 or any(has_word(name, *TEMPERATURES) for name in names):
                    continue
                cut = (_cut(source, scope, one) for one in term.factors)
                if (found := next(filter(None, cut), None)) is not None:
                    seen = "the log-probability is detached, so the policy has no gradient"
                    yield Hit(found, seen)


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
            holds = any(
                isinstance(inner, ast.Call) and last_word(inner.func) == "log_prob"
                for inner in ast.walk(node)
            )
            is_off = last_word(node.func) == "log_prob" and source.without_gradients(node)
            if holds and (is_off or last_word(node.func) == "detach"):
                return node
    return None
