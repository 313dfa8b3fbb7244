"""L27, L28: gradients and densities of actions that a policy draws."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.loss_signs import terms
from backflip.doctor.lint.rules.networks.bounded_values import is_q
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
CORRECTING = ("log", "log1p", "softplus", "logsigmoid", "log_abs_det_jacobian", "logaddexp")
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


def _wrong_densities(source: Source) -> Iterator[Hit]:
    yield from _squashed_densities(source)
    yield from _uncorrected_densities(source)


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


def _uncorrected_densities(source: Source) -> Iterator[Hit]:
    """Find `u = dist.rsample()` of which `tanh(u)` and `dist.log_prob(u)` go on, and no logarithm.

    An action that is used elsewhere may be the one that is learned from: its density is right.
    """
    if not source.imports_any("torch"):
        return
    for scope in source.scopes:
        pairs = [(written(target), value) for target, value, _ in assignments(scope)]
        drawn, normal = _always(pairs, ("rsample",)), _always(pairs, NORMAL)
        calls = [node for node in walk(scope) if isinstance(node, ast.Call)]
        if any(last_word(call.func) in CORRECTING for call in calls):
            continue
        for name in sorted(drawn):
            squashing = [one for one in calls if _takes(one, name, SQUASHING)]
            judging = [one for one in calls if _takes(one, name, ("log_prob",))]
            of = [one.func.value for one in judging if isinstance(one.func, ast.Attribute)]
            uses = sum(_reads(node, name) for node in walk(scope))
            if len(squashing) == 1 and len(judging) == 1 and uses == 2 and written(of[0]) in normal:
                yield Hit(judging[0], f"`{name}` is squashed, and its density is not corrected")


def _takes(call: ast.Call, name: str, words: tuple[str, ...]) -> bool:
    """Return whether a call of one of the words is given a name, or is a method of it."""
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    given = [written(one) for one in call.args] or [written(of) if of is not None else ""]
    return last_word(call.func) in words and given == [name]


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == name


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
        _wrong_densities,
    ),
)
