"""L27, L28: gradients and densities of actions that a policy draws."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.bounded_values import is_q
from backflip.doctor.lint.rules.loss_signs import terms
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    has_word,
    last_word,
    names_in,
    walk,
    written,
)

NORMAL = ("normal", "multivariatenormal")  # classes of torch.distributions, in lower case
SQUASHING = ("tanh", "sigmoid")
POLICIES = {"policy", "actor", "pi"}  # words in names of losses


def _cut_gradients(source: Source) -> Iterator[Hit]:
    """Find `a = dist.sample()` where the loss of a policy has `-q(obs, a)`."""
    if not source.imports_any("torch"):
        return
    for scope in source.scopes:
        drawn = _drawn(scope)
        for node in walk(scope) if drawn else ():
            loss = _loss(source, node)
            if loss is None or source.without_gradients(node):
                continue
            lowered = (one for term in terms(loss) if term.sign < 0 for one in term.factors)
            name = next(filter(None, (_valued(one, drawn) for one in lowered)), "")
            if name:
                yield Hit(node, f"`{name}` comes from `sample()`, and the loss has its Q-value")
                break


def _drawn(scope: Scope) -> set[str]:
    """Return the names that are only set by `sample()`, and those that squash what it draws."""
    pairs = [(written(target), value) for target, value, _ in assignments(scope)]
    drawn = _always(pairs, ("sample",))
    squashed = {name for name, value in pairs if drawn & names_in(value)}
    return drawn | (_always(pairs, SQUASHING) & squashed)


def _loss(source: Source, node: ast.AST) -> ast.expr | None:
    """Return the loss of a policy that a statement sets or returns; None for other statements."""
    match node:
        case ast.Assign(targets=[target], value=value):
            name = last_word(target)
        case ast.Return(value=ast.expr() as value):
            name = getattr(source.function_of(node), "name", "")
        case _:
            return None
    has_temperature = any(has_word(one, "alpha") for one in names_in(value))
    of_policy = has_temperature or bool(POLICIES & set(name.split("_")))
    return value if has_word(name, "loss") and of_policy else None


def _valued(factor: ast.expr, drawn: set[str]) -> str:
    """Return the drawn action in `q(obs, a)`; empty for anything else."""
    for call in ast.walk(factor):
        if isinstance(call, ast.Call) and (
            is_q(written(call.func)) or has_word(last_word(call.func), "critic")
        ):
            given = [written(one) for one in arguments(call)]
            return next((name for name in given if name in drawn), "")
    return ""


def _squashed_densities(source: Source) -> Iterator[Hit]:
    """Find `dist.log_prob(tanh(u))` of a normal distribution."""
    if not source.imports_any("torch"):
        return
    for scope in source.scopes:
        pairs = [(written(target), value) for target, value, _ in assignments(scope)]
        normal = _always(pairs, NORMAL)
        squashed = _always(pairs, SQUASHING)
        for call, _ in source.calls(scope):
            match call:
                case ast.Call(func=ast.Attribute(value=of, attr="log_prob"), args=[given]):
                    if written(of) in normal and written(given) in squashed:
                        seen = f"`{written(given)}` was squashed, and `{written(of)}` is normal"
                        yield Hit(call, seen)
                case _:
                    pass


def _always(pairs: list[tuple[str, ast.expr]], words: tuple[str, ...]) -> set[str]:
    """Return the names whose values are calls of one of the words, and nothing else."""
    found: dict[str, list[bool]] = {}
    for name, value in pairs:
        is_call = isinstance(value, ast.Call) and last_word(value.func) in words
        found.setdefault(name, []).append(is_call)
    return {name for name, calls in found.items() if name and all(calls)}


RULES = (
    Rule(
        "L27",
        "no gradient reaches the policy through its action",
        "`sample()` cuts the gradient: the critic says which actions are better, and the policy "
        "does not learn it.",
        "Draw the action with `rsample()`.",
        "PyTorch, documentation of distributions, pathwise derivative; arXiv:1801.01290, "
        "equation 12",
        _cut_gradients,
    ),
    Rule(
        "L28",
        "the density of a squashed action is that of another one",
        "tanh moves the action: its density under the normal distribution is that of an action "
        "near 0, and log-probabilities near the bounds are wrong without limit.",
        "Take `log_prob` of the action before tanh, and subtract `log(1 - tanh(u)^2)`, or use "
        "`TransformedDistribution` with `TanhTransform`.",
        "Haarnoja et al. 2018, arXiv:1801.01290, appendix C",
        _squashed_densities,
    ),
)
