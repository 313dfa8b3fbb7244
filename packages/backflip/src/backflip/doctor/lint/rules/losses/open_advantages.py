"""L29: gradients of a policy that flow into the value function through the advantage."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.loss_signs import (
    CREDITS,
    LIKELIHOODS,
    STACKS,
    appended,
    terms,
)
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    has_word,
    last_word,
    names_in,
    walk,
    written,
)

VALUES = ("value", "critic", "baseline", "vf")  # in names of networks
NETWORKS = ("model", "net", "network", "policy", "agent", "ac", "actor_critic")
CLOSED = ("detach", "item", "numpy", "tolist", "data", "no_grad", "stop_gradient")


def _open_advantages(source: Source) -> Iterator[Hit]:
    """Find `-(log_prob * advantage).mean()` of an advantage that is not detached."""
    if not source.imports_any("torch"):
        return
    for scope in source.scopes:
        advantages = _open_names(source, scope)
        for target, value, statement in assignments(scope) if advantages else ():
            if not has_word(last_word(target), "loss") or source.without_gradients(statement):
                continue
            parts = list(terms(value))
            names = filter(None, (_weight(one.factors, advantages) for one in parts))
            name = next(names, "")
            if name and (len(parts) > 1 or _is_added(scope, written(target))):
                yield Hit(statement, f"`{name}` comes from a value that is not detached")


def _is_added(scope: Scope, name: str) -> bool:
    """Return whether a loss is a part of a sum: alone, its optimiser may have no critic."""
    return any(
        len(list(terms(value))) > 1 and name in names_in(value)
        for _, value, _ in assignments(scope)
    )


def _weight(factors: list[ast.expr], advantages: set[str]) -> str:
    """Return the advantage that log π(a) is multiplied by, if its gradient is open; else empty."""
    likely = any(has_word(_last(one), *LIKELIHOODS) for one in factors)
    named = (written(one) for one in factors if isinstance(one, ast.Name | ast.Attribute))
    return next((name for name in named if name in advantages), "") if likely else ""


def _last(node: ast.expr) -> str:
    return last_word(node.func if isinstance(node, ast.Call) else node)


def _open_names(source: Source, scope: Scope) -> set[str]:
    """Return the names of advantages that are only set to differences with an open value."""
    values = _open_values(source, scope)
    found: dict[str, list[bool]] = {}
    for target, value, statement in assignments(scope):
        is_open = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)
        is_open = is_open and bool(values & names_in(value)) and not _closes(value)
        is_open = is_open and not source.without_gradients(statement)
        found.setdefault(written(target), []).append(is_open)
    return {name for name, ways in found.items() if has_word(name, *CREDITS) and all(ways)}


def _open_values(source: Source, scope: Scope) -> set[str]:
    """Return the names of values that a network computes in a scope, with gradients.

    Lists to which such values are appended are among them, and what is made of these lists.
    """
    open_ones, others = set[str](), set[str]()
    for target, value, statement in assignments(scope):
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        of_values = _is_value_of_network(value, is_one=len(parts) == 1)
        of_values = of_values or _is_list_of_open(scope, value, open_ones)
        if isinstance(value, ast.List) and not value.elts:
            continue  # what is appended to it counts
        is_open = of_values and not _closes(value) and not source.without_gradients(statement)
        named = {written(one) for one in parts if has_word(last_word(one), "value", "baseline")}
        (open_ones if is_open else others).update(named)
    return open_ones - others


def _is_list_of_open(scope: Scope, value: ast.expr, open_ones: set[str]) -> bool:
    """Return whether a value is `torch.cat(values)` of a list that open values are appended to."""
    match value:
        case ast.Call(func=func, args=[ast.Name(id=name), *_]) if last_word(func) in STACKS:
            kept = [one for listed, one in appended(scope) if listed == name]
            return bool(kept) and all(written(one) in open_ones for one in kept)
        case _:
            return False


def _is_value_of_network(value: ast.expr, *, is_one: bool) -> bool:
    """Return whether a value is `critic(obs)`, or one of several that `model(obs)` returns."""
    words = {_last(one) for one in ast.walk(value) if isinstance(one, ast.Call)}
    if any(has_word(word, *VALUES) for word in words):
        return True
    return not is_one and bool(words & set(NETWORKS))


def _closes(value: ast.expr) -> bool:
    return any(last_word(one) in CLOSED for one in (value, *walk(value)))


RULES = (
    Rule(
        "L29",
        "the policy gradient flows into the values",
        "The loss of the policy also moves the value function, towards values that make likely "
        "actions look worse: it no longer predicts returns.",
        "Detach the advantage: `-(log_prob * advantage.detach()).mean()`.",
        "Mnih et al. 2016, arXiv:1602.01783, algorithm S3",
        _open_advantages,
    ),
)
